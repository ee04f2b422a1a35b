"""How deep drafts hold: the share of the drafted tokens that were kept, by depth."""

from collections.abc import Sequence

from app.figures.run.lane_run import LaneRun, line
from app.figures.style import Figure, depth_axis
from app.figures.text import plain, shorten
from decoding.metrics import acceptance_by_depth
from decoding.trace import DepthAcceptance

MARGIN = {"l": 44, "r": 10, "t": 12, "b": 44}


def acceptance(runs: Sequence[LaneRun]) -> Figure | None:
    """Kept / drafted tokens of the blocks put forward, by depth; None if no lane drafted anything."""
    depths = max((depth.depth for run in runs for depth in acceptance_by_depth(run.steps)), default=0)
    if not depths:
        return None
    return {
        "data": [_line(lane, run) for lane, run in enumerate(runs) if run.drafts],
        "layout": {
            "margin": MARGIN,
            "xaxis": depth_axis(depths),
            "yaxis": {"range": [-0.03, 1.05], "tickformat": ".0%", "tickvals": [0, 0.25, 0.5, 0.75, 1]},
        },
    }


def share(depth: DepthAcceptance) -> str:
    """Counts and their share in words.

    >>> share(DepthAcceptance(depth=1, drafted=8, accepted=6))
    '6 of 8 (75 %)'
    """
    return f"{depth.accepted} of {depth.drafted} ({100 * depth.accepted / depth.drafted:.0f} %)"


def _line(lane: int, run: LaneRun) -> Figure:
    found = acceptance_by_depth(run.steps)
    title = plain(shorten(run.title))
    hover = [f"{title}<br>depth {depth.depth}: {share(depth)} kept" for depth in found]
    return line(lane, [depth.depth for depth in found], [depth.accepted / depth.drafted for depth in found], hover)
