"""The laws that a token was taken from: target and draft side by side, as sampled from and as they came."""

from collections.abc import Sequence

from app.figures.style import LIGHT, MONO, Figure
from app.figures.text import Spell, label, number, plain, shorten
from decoding.trace import Candidate, Step

ROWS = 10
COLUMNS = 13
WIDTH = 0.38  # of a bar, in rows
FRAME = 0.9  # height of the residual's frames, in rows
MARGIN = {"l": 110, "r": 10, "t": 12, "b": 44}
EXACT = 5e-4  # less unlisted mass than this does not show


def next_token(step: Step, depth: int, spell: Spell) -> Figure:
    """The most probable tokens at one of the step's emitted tokens; the one that was taken is marked ▸.

    Bars are the warped laws p̃ and q̃, with the alternatives' ids as their data; strokes are the unwarped p and q. Where a refused token was replaced, frames are the
    residual law that its replacement was drawn from.
    """
    taken = step.emitted[depth].token
    shown = shown_candidates(step.choices[depth].top, taken)
    rows = list(range(len(shown)))
    aside = 0.0 if all(c.q is None for c in shown) else 0.21  # how far the two laws stand from a row's middle
    return {
        "data": [
            _bars("p̃", [c.p_warped for c in shown], LIGHT["target"], -aside, shown, taken, spell),
            _bars("q̃", [c.q_warped for c in shown], LIGHT["draft"], aside, shown, taken, spell),
            _strokes("p", [c.p for c in shown], -aside),
            _strokes("q", [c.q for c in shown], aside),
            *_residual_frames(step, depth, shown),
        ],
        "layout": {
            "margin": MARGIN,
            "barmode": "overlay",
            "xaxis": {"range": [0, 1], "tickvals": [0, 0.25, 0.5, 0.75, 1], "title": {"text": "probability"}},
            "yaxis": {
                "range": [ROWS - 0.5, -0.5],
                "showgrid": False,
                "tickvals": rows,
                "ticktext": [("▸ " if c.token == taken else "") + label(spell(c.token), COLUMNS) + " " for c in shown],
                "tickfont": {"family": MONO, "size": 11, "color": LIGHT["ink"]},
            },
        },
    }


def shown_candidates(candidates: Sequence[Candidate], taken: int) -> list[Candidate]:
    """The likeliest under either warped law, and the one that was taken; in the order of the target's law."""
    possible = [c for c in candidates if c.p or c.q or c.token == taken]
    by_weight = sorted(possible, key=lambda c: (c.token != taken, -max(c.p_warped, c.q_warped or 0), -c.p, c.token))
    return sorted(by_weight[:ROWS], key=lambda c: (-c.p_warped, -c.p, c.token))


def residual(step: Step, depth: int, shown: Sequence[Candidate]) -> list[float] | None:
    """max(p̃ − q̃, 0), normalised, of some tokens: what a refused token's replacement is drawn from (Leviathan et al. 2023).

    None where nothing was replaced, or where unlisted tokens leave its sum open.
    """
    bounds = overlap(step.choices[depth].top)
    if step.emitted[depth].origin != "resampled" or bounds is None or bounds[0] != bounds[1] or bounds[0] >= 1:
        return None
    return [max(0.0, c.p_warped - (c.q_warped or 0.0)) / (1 - bounds[0]) for c in shown]


def _residual_frames(step: Step, depth: int, shown: Sequence[Candidate]) -> list[Figure]:
    values = residual(step, depth, shown)
    if values is None:
        return []
    frame = {"color": "rgba(0,0,0,0)", "line": {"color": LIGHT["dropped"], "width": [1.5 if v else 0 for v in values]}}
    bars = {"type": "bar", "orientation": "h", "name": "residual", "y": list(range(len(values))), "x": values}
    return [bars | {"offset": -FRAME / 2, "width": FRAME, "marker": frame, "hoverinfo": "skip"}]


def overlap(candidates: Sequence[Candidate]) -> tuple[float, float] | None:
    """Bounds of Σ min(p̃, q̃), the rate at which a drafted token is accepted; None where the draft was not asked.

    Tokens that are not listed can add no more than either law has left; as a rule that is nothing, and the bounds are equal.
    """
    if any(c.q_warped is None for c in candidates):
        return None
    least = sum(min(c.p_warped, c.q_warped or 0) for c in candidates)
    left = min(1 - sum(c.p_warped for c in candidates), 1 - sum(c.q_warped or 0 for c in candidates))
    return least, least if left < EXACT else min(1.0, least + left)


def _bars(
    name: str,
    values: Sequence[float | None],
    colour: str,
    aside: float,
    shown: Sequence[Candidate],
    taken: int,
    spell: Spell,
) -> Figure:
    return {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "y": list(range(len(values))),
        "x": list(values),
        "offset": aside - WIDTH / 2,
        "width": WIDTH,
        "marker": {"color": colour},
        "hoverinfo": "text",
        "hovertext": [_hover(candidate, spell) for candidate in shown],
        "customdata": [None if candidate.token == taken else [candidate.token] for candidate in shown],
    }


def _strokes(name: str, values: Sequence[float | None], aside: float) -> Figure:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": list(values),
        "y": [row + aside for row in range(len(values))],
        "marker": {"symbol": "line-ns", "size": 9, "line": {"width": 2, "color": LIGHT["ink"]}},
        "hoverinfo": "skip",
    }


def _hover(candidate: Candidate, spell: Spell) -> str:
    lines = [
        plain(shorten(spell(candidate.token))),
        f"p̃ = {number(candidate.p_warped)} · p = {number(candidate.p)}",
        "the draft was not asked"
        if candidate.q is None
        else f"q̃ = {number(candidate.q_warped or 0)} · q = {number(candidate.q)}",
    ]
    return "<br>".join(lines)
