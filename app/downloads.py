"""Finished runs as files: addresses beside the page, which need no place in the queue."""

import re
from collections.abc import Callable, Sequence

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from app.explained import GONE
from app.report import report
from decoding.trace import Trace
from decoding.trace_file import write_traces

Finished = Callable[[str], Sequence[Trace] | None]


def routes(finished: Finished) -> list[Route]:
    """The addresses of a run's files; `finished` gives a run's traces, as long as they are kept."""

    def traces(request: Request) -> Response:
        found = finished(request.path_params["run"])
        return _file(write_traces(found), "application/json", found, "json") if found else _gone()

    def html(request: Request) -> Response:
        found = finished(request.path_params["run"])
        return _file(report(found), "text/html", found, "html") if found else _gone()

    return [Route("/runs/{run}/traces.json", traces), Route("/runs/{run}/report.html", html)]


def file_name(traces: Sequence[Trace], ending: str) -> str:
    """A name that says what is in the file, in letters that every system takes."""
    words = re.findall(r"[a-z0-9]+", traces[0].prompt.text.lower())[:6]
    return "-".join(["decoding", *words])[:60] + f".{ending}"


def _file(content: str, media_type: str, traces: Sequence[Trace], ending: str) -> Response:
    disposition = f'attachment; filename="{file_name(traces, ending)}"'
    headers = {"Content-Disposition": disposition, "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
    return Response(content, media_type=media_type, headers=headers)


def _gone() -> Response:
    return PlainTextResponse(GONE, status_code=404)
