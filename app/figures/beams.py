"""The drafted tree by depth: what the draft thought likely, which beam it put forward, and how much of that was kept."""

from math import exp, sqrt

from app.figures.style import HEIGHT, LIGHT, MONO, NARROWEST, NO_LABEL, Figure, depth_axis, kept_band
from app.figures.text import Spell, label, plain, probability, shorten
from decoding.trace import BlockSearch, Draft, Node, Step

MARGIN = {"l": 8, "r": 8, "t": 12, "b": 44}
MOST_LABELLED_ROWS = 6
MOST_BLOCKS = 11  # of a search, beside the one that was written
FEWEST_COLUMNS = 4  # a label with less room says nothing
Point = tuple[float, float]


def beams(step: Step, spell: Spell, *, length: int, width: int) -> Figure | None:
    """The draft of a step as a tree, the chosen block along its top; None if nothing was drafted.

    A node's area is its probability under the draft, given its path. Kept tokens are filled and framed, dropped tokens of
    the chosen block are crossed, beams that died are faint and dotted. Of an exact search, only the best of the blocks
    that it found are shown, and the one it wrote.

    Args:
        length, width: γ and b of the run, for axes that are the same at every step.
    """
    if step.draft is None:
        return None
    nodes, chosen = found_blocks(step.draft, step.search) if step.search else (step.draft.nodes, step.draft.chosen)
    kept = len(chosen) if step.search else sum(verdict.accepted for verdict in step.verdicts)
    rows = _rows(nodes, chosen)
    top = max(0.75, 0.14 * width)  # in rows: room for the labels of the first
    points: list[Point] = [(node.depth, -rows[i]) for i, node in enumerate(nodes)]
    groups = {
        "dead": [i for i, node in enumerate(nodes) if not node.alive and i not in chosen],
        "alive": [i for i, node in enumerate(nodes) if node.alive and i not in chosen],
        "dropped": list(chosen[kept:]),
        "kept": list(chosen[:kept]),
    }
    group_of = {i: group for group, members in groups.items() for i in members}
    edges = [_edges(group, members, nodes, points) for group, members in groups.items()]
    dots = _dots(nodes, points, [group_of[i] for i in range(len(nodes))], spell, length, width)
    return {
        "data": [*edges, dots],
        "layout": {
            "margin": MARGIN,
            "xaxis": depth_axis(length, start=-0.3, block="block" if step.search else "drafted block")
            | {"showgrid": False, "tickvals": list(range(1, length + 1))},
            "yaxis": {"range": [0.4 - width, top] if width > 1 else [-1.3, 1.45], "visible": False},
            "shapes": kept_band(kept, y0=-0.42, y1=top - 0.13),
        },
    }


def found_blocks(draft: Draft, search: BlockSearch) -> tuple[tuple[Node, ...], tuple[int, ...]]:
    """The tree of the best blocks that a search found and the one it wrote, and the path of that one."""
    shown: set[int] = set(draft.chosen)
    for end in search.blocks[:MOST_BLOCKS]:
        at: int | None = end
        while at is not None:
            shown.add(at)
            at = draft.nodes[at].parent
    place: dict[int | None, int] = {old: new for new, old in enumerate(sorted(shown))}
    moved = [
        draft.nodes[old].model_copy(update={"parent": place.get(draft.nodes[old].parent)}) for old in sorted(shown)
    ]
    return tuple(moved), tuple(place[old] for old in draft.chosen)


def _rows(nodes: tuple[Node, ...], chosen: tuple[int, ...]) -> dict[int | None, int]:
    """A row for each node: the chosen block in row 0, the others below in the order of their parents, so no edges cross."""
    rows: dict[int | None, int] = {None: 0}
    for depth in range(1, max((node.depth for node in nodes), default=0) + 1):
        here = [i for i, node in enumerate(nodes) if node.depth == depth]
        here.sort(key=lambda i: (i not in chosen, rows[nodes[i].parent], -nodes[i].joint_log_q))
        first = 0 if any(i in chosen for i in here) else 1
        rows |= {i: row for row, i in enumerate(here, start=first)}
    return rows


EDGES: dict[str, Figure] = {
    "dead": {"color": LIGHT["muted"], "width": 1, "dash": "dot"},
    "alive": {"color": LIGHT["muted"], "width": 1.5},
    "dropped": {"color": LIGHT["dropped"], "width": 3.5},
    "kept": {"color": LIGHT["kept"], "width": 3.5},
}


def _edges(group: str, members: list[int], nodes: tuple[Node, ...], points: list[Point]) -> Figure:
    xs: list[float | None] = []
    ys: list[float | None] = []
    for i in members:
        parent = nodes[i].parent
        start = (0, 0) if parent is None else points[parent]
        xs += [start[0], points[i][0], None]
        ys += [start[1], points[i][1], None]
    return {
        "type": "scatter",
        "mode": "lines",
        "x": xs,
        "y": ys,
        "line": EDGES[group],
        "opacity": 0.5 if group == "dead" else 1,
        "hoverinfo": "skip",
    }


SYMBOLS = {"dead": "circle-open", "alive": "circle-open", "dropped": "circle-x-open", "kept": "circle"}
COLOURS = {"dead": LIGHT["muted"], "alive": LIGHT["muted"], "dropped": LIGHT["dropped"], "kept": LIGHT["kept"]}


def _dots(
    nodes: tuple[Node, ...], points: list[Point], groups: list[str], spell: Spell, length: int, width: int
) -> Figure:
    largest = min(24.0, 0.5 * HEIGHT / (width + 1))
    columns = int(NARROWEST / (length + 1) / 7)
    labelled = (
        set() if columns < FEWEST_COLUMNS else {"kept", "dropped"} if width > MOST_LABELLED_ROWS else set(SYMBOLS)
    )
    return {
        "type": "scatter",
        "mode": "markers+text",
        "x": [x for x, _ in points],
        "y": [y for _, y in points],
        "marker": {
            "symbol": [SYMBOLS[group] for group in groups],
            "color": [COLOURS[group] for group in groups],
            "size": [5 + (largest - 5) * sqrt(min(1.0, exp(node.log_q))) for node in nodes],
            "opacity": [0.6 if group == "dead" else 1 for group in groups],
            "line": {"width": 2, "color": [COLOURS[group] for group in groups]},
        },
        "text": [
            label(spell(node.token), columns) if group in labelled else NO_LABEL
            for node, group in zip(nodes, groups, strict=True)
        ],
        "textposition": "top center",
        "textfont": {
            "family": MONO,
            "size": 11,
            "color": [LIGHT["muted" if group in {"dead", "alive"} else "ink"] for group in groups],
        },
        "cliponaxis": False,
        "hoverinfo": "text",
        "hovertext": [_hover(node, group, spell) for node, group in zip(nodes, groups, strict=True)],
    }


STATES = {
    "dead": "a beam that died",
    "alive": "a beam that was not chosen",
    "dropped": "chosen, dropped",
    "kept": "chosen, kept",
}


def _hover(node: Node, group: str, spell: Spell) -> str:
    lines = [
        plain(shorten(spell(node.token))),
        f"depth {node.depth}, {STATES[group]}",
        f"q = {probability(node.log_q)} · p = {_scored(node.log_p)}",
        f"Q = {probability(node.joint_log_q)} · P = {_scored(node.joint_log_p)}",
    ]
    return "<br>".join(lines)


def _scored(log_probability: float | None) -> str:
    return "not scored" if log_probability is None else probability(log_probability)
