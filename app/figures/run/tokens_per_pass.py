"""How many tokens a target pass has given so far."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.figures.run.lane_run import LaneRun, line, token_axis
from app.figures.style import Figure
from app.figures.text import plain, shorten

MARGIN = {"l": 44, "r": 10, "t": 12, "b": 44}


@dataclass(frozen=True)
class Yield:
    """What a lane had after a step: tokens written, those of them decoded (not given), and target passes made."""

    step: int
    written: int
    decoded: int
    passes: int

    @property
    def rate(self) -> float:
        """Decoded tokens per target pass."""
        return self.decoded / self.passes


def tokens_per_pass(runs: Sequence[LaneRun]) -> Figure:
    """Tokens per target pass (block efficiency) of the steps so far, at each step's last token; prefill is apart."""
    return {
        "data": [_line(lane, run) for lane, run in enumerate(runs)],
        "layout": {
            "margin": MARGIN,
            "xaxis": token_axis(runs),
            "yaxis": {"title": {"text": "tokens / target pass"}, "rangemode": "tozero", "nticks": 6},
        },
    }


def yields(run: LaneRun) -> list[Yield]:
    """What there was after each step, from the first target pass on."""
    found = []
    decoded = passes = 0
    for step in run.steps:
        decoded += sum(token.origin != "forced" for token in step.emitted)
        passes += step.cost.target_passes
        if passes:
            found.append(Yield(step.index, step.start + len(step.emitted), decoded, passes))
    return found


def _line(lane: int, run: LaneRun) -> Figure:
    found = yields(run)
    title = plain(shorten(run.title))
    hover = [
        f"{title}<br>after step {y.step + 1}: {y.decoded} tokens / {y.passes} passes = {y.rate:.3f}" for y in found
    ]
    places = [(lane, y.step, max(0, len(run.steps[y.step].emitted) - 1)) for y in found]
    return line(lane, [y.written for y in found], [y.rate for y in found], hover, places)
