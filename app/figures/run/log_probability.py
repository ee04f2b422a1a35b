"""How likely each text is under the target, token by token."""

from collections.abc import Sequence
from itertools import accumulate
from math import inf

from app.figures.run.lane_run import LaneRun, token_axis, token_lines
from app.figures.style import Figure

MARGIN = {"l": 52, "r": 10, "t": 12, "b": 44}


def log_probability(runs: Sequence[LaneRun]) -> Figure:
    """The cumulative log-probability of the lanes' texts under the unwarped target, in nats.

    A line ends before a token of probability 0, whose logarithm is −∞.
    """
    return {
        "data": [_line(lane, run) for lane, run in enumerate(runs)],
        "layout": {
            "margin": MARGIN,
            "xaxis": token_axis(runs),
            "yaxis": {"title": {"text": "Σ log p, nats"}, "nticks": 6},
        },
    }


def cumulative(run: LaneRun) -> list[float]:
    """The sum of log p up to and including each token."""
    return list(accumulate(token.log_p for _, _, token in run.tokens()))


def written(value: float) -> str:
    """A log-probability in figures.

    >>> written(-12.3456), written(-inf)
    ('−12.346', '−∞')
    """
    return "−∞" if value == -inf else f"{value:.3f}".replace("-", "−")


def _line(lane: int, run: LaneRun) -> Figure:
    sums = cumulative(run)
    remarks = [
        f"log p = {written(token.log_p)}, sum so far {written(value)}"
        for (_, _, token), value in zip(run.tokens(), sums, strict=True)
    ]
    return token_lines(lane, run, [None if value == -inf else value for value in sums], remarks)
