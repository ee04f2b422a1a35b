"""How open the target was at each token."""

from collections.abc import Sequence

from app.figures.run.lane_run import LaneRun, token_axis, token_lines
from app.figures.style import Figure

MARGIN = {"l": 44, "r": 10, "t": 12, "b": 44}


def entropy(runs: Sequence[LaneRun]) -> Figure:
    """The entropy in nats of the unwarped target's law that each token was taken from."""
    most = max((value for run in runs for value in entropies(run)), default=0.0) or 1.0
    return {
        "data": [_line(lane, run) for lane, run in enumerate(runs)],
        "layout": {
            "margin": MARGIN,
            "xaxis": token_axis(runs),
            "yaxis": {"title": {"text": "entropy, nats"}, "range": [-0.04 * most, 1.06 * most], "nticks": 6},
        },
    }


def entropies(run: LaneRun) -> list[float]:
    """The target's entropy at each token."""
    return [step.choices[position].entropy_p for step, position, _ in run.tokens()]


def _line(lane: int, run: LaneRun) -> Figure:
    values = entropies(run)
    return token_lines(lane, run, values, [f"entropy of p = {value:.3f} nats" for value in values])
