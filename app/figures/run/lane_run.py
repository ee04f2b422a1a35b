"""A lane's run as the figures take it, and how its line is told from the others'."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from app.figures.style import LIGHT, Figure
from app.figures.text import Spell, label, plain, shorten
from decoding.trace import Emitted, Step

COLUMNS = 44  # of a lane's title
MOST_MARKERS = 12  # on a line, however many points it has
Place = tuple[int, int, int]  # lane, step, and which of the step's tokens: what a click opens


@dataclass(frozen=True)
class LaneRun:
    """The steps of a lane.

    Attributes:
        spell: how a token is written, see `app.figures.text`.
    """

    title: str
    steps: Sequence[Step]
    spell: Spell

    @property
    def drafts(self) -> bool:
        """Whether drafted tokens were judged in it."""
        return any(step.verdicts for step in self.steps)

    def tokens(self) -> Iterator[tuple[Step, int, Emitted]]:
        """Every token of the text with its step and its position there."""
        for step in self.steps:
            for position, token in enumerate(step.emitted):
                yield step, position, token


@dataclass(frozen=True)
class Stroke:
    """How a lane is drawn: three marks, of which the colour alone is not needed."""

    colour: str
    dash: str
    symbol: str
    sign: str  # the symbol as a character


STROKES = (
    Stroke(LIGHT["ink"], "solid", "circle", "●"),
    Stroke(LIGHT["pink"], "dash", "square", "■"),
    Stroke(LIGHT["kept"], "dot", "diamond", "◆"),
    Stroke(LIGHT["dropped"], "dashdot", "triangle-up", "▲"),
)


def stroke(lane: int) -> Stroke:
    """The marks of a lane, by its place in the race."""
    return STROKES[lane % len(STROKES)]


def signed_title(lane: int, run: LaneRun) -> str:
    """A lane's title behind its sign, as text of a figure."""
    return f"{stroke(lane).sign} {label(run.title, COLUMNS)}"


def line(
    lane: int,
    xs: Sequence[float],
    ys: Sequence[float | None],
    hover: Sequence[str],
    places: Sequence[Place] | None = None,
) -> Figure:
    """A lane's values as a line; `places` are what clicks on its points open."""
    drawn = stroke(lane)
    trace: dict[str, Any] = {
        "type": "scatter",
        "mode": "lines+markers",
        "x": list(xs),
        "y": list(ys),
        "line": {"color": drawn.colour, "width": 2, "dash": drawn.dash},
        "marker": {"color": drawn.colour, "symbol": drawn.symbol, "size": 7, "maxdisplayed": MOST_MARKERS},
        "hoverinfo": "text",
        "hovertext": list(hover),
    }
    return trace | ({"customdata": [list(place) for place in places]} if places is not None else {})


def token_lines(lane: int, run: LaneRun, values: Sequence[float | None], remarks: Sequence[str]) -> Figure:
    """A lane's values by token; hovering tells the token, the lane, and a remark on the value."""
    tokens = list(run.tokens())
    title = plain(shorten(run.title))
    hover = [
        f"{plain(shorten(run.spell(token.token)))}<br>{title}<br>"
        f"token {index}, step {step.index + 1}, {token.origin}<br>{remark}"
        for index, ((step, _, token), remark) in enumerate(zip(tokens, remarks, strict=True), start=1)
    ]
    places = [(lane, step.index, position) for step, position, _ in tokens]
    return line(lane, range(1, len(tokens) + 1), values, hover, places)


def token_axis(runs: Sequence[LaneRun]) -> Figure:
    """The horizontal axis of figures by token: the same in all of them."""
    most = max((sum(len(step.emitted) for step in run.steps) for run in runs), default=1)
    margin = 0.5 + 0.02 * most
    return {"range": [1 - margin, most + margin], "title": {"text": "token of the text"}}
