"""The figures of a whole run, one file each: the steps of all lanes in, a plotly figure out, as plain data.

Like those of a step, a figure is a dict with `data` and `layout`. A lane has the same colour, dash and symbol in all of them.
"""
