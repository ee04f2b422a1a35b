"""The figures of a step, one file each: a step in, a plotly figure out, as plain data.

A figure is a dict with `data` and `layout`, as `plotly.graph_objects.Figure` takes it. The page adds what all share (see
`app.figures.style`) and shows it by plotly.js; numbers are the step's own.
"""
