"""The blocks that an exact search found, by joint probability: what one of them was drawn from."""

from math import exp

from app.figures.style import LIGHT, MONO, Figure
from app.figures.text import Spell, label, number, plain, shorten
from decoding.trace import BlockSearch, Draft, Step

ROWS = 12
COLUMNS = 15
MARGIN = {"l": 124, "r": 10, "t": 12, "b": 44}
LEAST = 1e-12  # of a longest bar, so that an axis has a length


def blocks(step: Step, spell: Spell) -> Figure | None:
    """A bar for each of the best blocks and the one that was written, marked ▸; None if nothing was searched for.

    A dashed line bounds all blocks that were not proven to be the best: nothing that the search did not find exceeds it.
    """
    if step.draft is None or step.search is None:
        return None
    ranks = shown_ranks(step.draft, step.search)
    written = written_rank(step.draft, step.search)
    texts = [block_text(step.draft, step.search.blocks[rank], spell) for rank in ranks]
    values = [exp(step.draft.nodes[step.search.blocks[rank]].joint_log_p or 0.0) for rank in ranks]
    bound = exp(step.search.bound)
    return {
        "data": [
            {
                "type": "bar",
                "orientation": "h",
                "y": list(range(len(ranks))),
                "x": values,
                "width": 0.7,
                "marker": {
                    "color": [LIGHT["kept" if rank == written else "target"] for rank in ranks],
                    "opacity": [1.0 if rank < step.search.proven else 0.55 for rank in ranks],
                },
                "hoverinfo": "text",
                "hovertext": [
                    f"{plain(shorten(text))}<br>number {rank + 1}: P = {number(value)}<br>{state(rank, step.search)}"
                    for rank, text, value in zip(ranks, texts, values, strict=True)
                ],
            }
        ],
        "layout": {
            "margin": MARGIN,
            "xaxis": {
                "range": [0, 1.08 * max(*values, bound, LEAST)],
                "nticks": 5,
                "title": {"text": "joint probability P"},
            },
            "yaxis": {
                "range": [ROWS - 0.5, -0.5],
                "showgrid": False,
                "tickvals": list(range(len(ranks))),
                "ticktext": [
                    ("▸ " if rank == written else "") + label(text, COLUMNS) + " "
                    for rank, text in zip(ranks, texts, strict=True)
                ],
                "tickfont": {"family": MONO, "size": 11, "color": LIGHT["ink"]},
            },
            "shapes": [_line(bound)],
        },
    }


def shown_ranks(draft: Draft, search: BlockSearch) -> list[int]:
    """Which of the blocks found are shown: the first, and the one that was written."""
    ranks = list(range(min(ROWS, len(search.blocks))))
    written = written_rank(draft, search)
    return ranks if written in ranks else [*ranks[:-1], written]


def written_rank(draft: Draft, search: BlockSearch) -> int:
    """Which of the blocks found was written; 0 is the most probable."""
    return search.blocks.index(draft.chosen[-1])


def block_text(draft: Draft, end: int, spell: Spell) -> str:
    """A block's tokens as one line."""
    tokens: list[str] = []
    at: int | None = end
    while at is not None:
        tokens.append(spell(draft.nodes[at].token))
        at = draft.nodes[at].parent
    return "".join(reversed(tokens))


def state(rank: int, search: BlockSearch) -> str:
    """Whether a block's place among all blocks is proven."""
    return "proven" if rank < search.proven else "best found"


def _line(bound: float) -> Figure:
    return {
        "type": "line",
        "yref": "paper",
        "y0": 0,
        "y1": 1,
        "x0": bound,
        "x1": bound,
        "line": {"color": LIGHT["ink"], "width": 1.5, "dash": "dash"},
    }
