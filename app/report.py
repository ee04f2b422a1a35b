"""A run as one HTML file that opens offline: the page's own scripts, with the data inside."""

import json
from collections.abc import Sequence
from typing import Any

from app import look
from app.inspector import look as figure_look
from app.shown import show, trace_views
from decoding.settings import DecodingSettings
from decoding.trace import Trace


def report(traces: Sequence[Trace]) -> str:
    """The report of a run, at least one trace; all text of models and visitors is in it as data.

    Raises:
        InvalidTrace: a trace is of a method that is not known here.
    """
    shown = show("report", traces)
    data = {
        "about": _about(traces),
        "race": shown.race,
        "steps": shown.steps,
        "overview": shown.overview,
        "look": figure_look(),
    }
    parts = {
        "style": look.style() + look.asset("report.css"),
        "scripts": look.plotly_source() + "\n" + look.scripts() + "\n" + look.asset("report.js"),
        "data": json.dumps(data, ensure_ascii=True, allow_nan=False),
    }
    page = look.asset("report.html")
    for name, content in parts.items():
        before, after = page.split("{{" + name + "}}")
        page = before + _inside_element(content) + after
    return page


def _inside_element(content: str) -> str:
    """Nothing in it ends the element that it stands in; to scripts and to JSON it still means the same."""
    return content.replace("</", "<\\/").replace("<!--", "<\\u0021--")


def _about(traces: Sequence[Trace]) -> dict[str, Any]:
    titles = [view.title for view in trace_views(traces)]
    lanes = [
        [
            title,
            _model(trace.target.name, trace.target.dtype),
            _model(trace.draft.name, trace.draft.dtype) if trace.draft else "–",
            _settings(trace.settings),
            trace.result.finish_reason,
        ]
        for title, trace in zip(titles, traces, strict=True)
    ]
    return {"prompt": traces[0].prompt.text, "lanes": lanes}


def _model(name: str, dtype: str) -> str:
    return f"{name} ({dtype})"


def _settings(settings: DecodingSettings) -> str:
    return ", ".join(f"{name} {value}" for name, value in dict(settings).items() if value != ())
