"""What the inspector is fed: every step once, with its words, figures and tables, as it comes."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import exp, inf, isfinite
from typing import Any

from app.figures.beams import MOST_BLOCKS, beams
from app.figures.blocks import block_text, blocks, shown_ranks, state, written_rank
from app.figures.joint import Rule, joint
from app.figures.next_token import next_token, overlap, residual, shown_candidates
from app.figures.style import DARK, HEIGHT, LIGHT, exchange, template
from app.figures.text import Spell, number, one_line, probability, ratio, shorten
from app.lanes import LaneView, Spelling
from app.step_words import Telling, words
from app.tokens import show_token
from decoding.settings import DecodingSettings
from decoding.trace import Candidate, Step, Verdict

Data = dict[str, Any]
COLUMNS = 24  # of a token in a table
ALTERNATIVES = 5  # offered to branch with
NO_STEPS: Data = {"run": "", "lanes": []}


class Inspection:
    """The steps of a race's lanes, packed for the page.

    Args:
        run: the race's id.
    """

    def __init__(self, run: str, views: Sequence[LaneView]) -> None:
        self._run = run
        self._views = views
        self._tellings = [_telling(view) for view in views]
        self._packed: list[list[str]] = [[] for _ in views]

    def data(self) -> Data:
        """All lanes with their steps so far; what was packed before is not packed again."""
        for view, telling, packed in zip(self._views, self._tellings, self._packed, strict=True):
            packed += [pack(step, telling) for step in view.steps[len(packed) :]]
        lanes = zip(self._views, self._packed, strict=True)
        return {"run": self._run, "lanes": [_lane(view, packed) for view, packed in lanes]}


def look() -> Data:
    """What the figures of all steps share."""
    return {
        "templates": {"light": template(LIGHT), "dark": template(DARK)},
        "exchange": exchange(),
        "height": HEIGHT,
    }


def pack(step: Step, telling: Telling) -> str:
    """All that the page shows of a step, as JSON text: gradio walks through data at every update, but not through text."""
    settings, spell = telling.settings, telling.spell
    joints = _joints(step, telling)
    rule = _rule(telling.method, settings)
    shown = {
        "words": words(step, telling),
        "start": step.start,
        "kept": sum(verdict.accepted for verdict in step.verdicts),
        "beams": beams(step, spell, length=settings.draft_length, width=_width(telling)),
        "joint": joint(step, rule, length=settings.draft_length) or blocks(step, spell),
        "joints": [[_null(best.joint_log_p), _null(best.bar)] for best in joints],
        "ends": [best.token in telling.eos_ids for best in joints],
        "verdicts": block_table(step, spell) if step.search else verdict_table(step.verdicts, rule, spell),
        "bound": bound_note(step) if telling.method == "mtad" else "",
        "choices": [_choice(step, depth, spell) for depth in range(len(step.emitted))],
    }
    return json.dumps(shown, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def verdict_table(verdicts: Sequence[Verdict], rule: Rule, spell: Spell) -> list[list[str]]:
    """A row for each depth: depth, token, q, p, joint Q and P, what was compared with what, and the outcome."""
    return [
        [
            str(verdict.depth),
            shorten(spell(verdict.token), COLUMNS),
            probability(verdict.log_q),
            probability(verdict.log_p),
            probability(verdict.joint_log_q),
            probability(verdict.joint_log_p),
            *_comparison(verdict, rule),
            _outcome(verdict),
        ]
        for verdict in verdicts
    ]


def block_table(step: Step, spell: Spell) -> list[list[str]]:
    """A row for each block shown: rank, tokens, P, its share of the law that was drawn from, and whether it is proven."""
    if step.draft is None or step.search is None:
        return []
    draft, search = step.draft, step.search
    joint_p = [exp(draft.nodes[end].joint_log_p or 0.0) for end in search.blocks]
    written = written_rank(draft, search)
    return [
        [
            str(rank + 1),
            shorten(block_text(draft, search.blocks[rank], spell), COLUMNS),
            number(joint_p[rank]),
            number(joint_p[rank] / sum(joint_p)),
            state(rank, search) + (", written" if rank == written else ""),
        ]
        for rank in shown_ranks(draft, search)
    ]


def bound_note(step: Step) -> str:
    """What the rule of MTAD promises of the kept part, with the step's own numbers; empty where nothing was kept.

    A prefix of j tokens that passes has log P − log Q > log τ, so its perplexities obey PPL_p < PPL_q · τ^(−1/j).
    """
    kept = [verdict for verdict in step.verdicts if verdict.accepted]
    if not kept or step.draft is None or kept[-1].threshold is None:
        return ""
    last = step.draft.nodes[step.draft.chosen[len(kept) - 1]]
    perplexity_p, perplexity_q = exp(-kept[-1].joint_log_p / len(kept)), exp(-last.joint_log_q / len(kept))
    bound = perplexity_q * kept[-1].threshold ** (-1 / len(kept))
    factor = f" · τ^(−1/{len(kept)})" if len(kept) > 1 else "/τ"
    return (
        f"Bound: the kept part's perplexity is {number(perplexity_p)} under the target, "
        f"less than {number(perplexity_q)}{factor} = {number(bound)} from the draft's."
    )


@dataclass(frozen=True)
class Best:
    """At a depth, the node that decides whether the rule of MTAD holds there: its token, log P, and what that is compared with."""

    token: int
    joint_log_p: float
    bar: float


def _joints(step: Step, telling: Telling) -> list[Best]:
    if step.draft is None or telling.bar == "Q":
        return [Best(verdict.token, verdict.joint_log_p, verdict.joint_log_q) for verdict in step.verdicts]
    scored = [(node, -inf if node.joint_log_p is None else node.joint_log_p) for node in step.draft.nodes]
    best = []
    for depth in range(1, max(node.depth for node, _ in scored) + 1):
        here = [(node, log_p) for node, log_p in scored if node.depth == depth]
        node, log_p = max(here, key=lambda pair: pair[1])
        best.append(Best(node.token, log_p, max(node.joint_log_q for node, _ in here)))
    return best


def candidate_table(step: Step, depth: int, spell: Spell) -> list[list[str]]:
    """A row for each token shown: token, p̃, q̃, p, q."""
    candidates = shown_candidates(step.choices[depth].top, step.emitted[depth].token)
    return [
        [shorten(spell(c.token), COLUMNS), *(_figure(value) for value in (c.p_warped, c.q_warped, c.p, c.q))]
        for c in candidates
    ]


def visible(spelling: Spelling) -> Spell:
    """From a token's id to one line that shows every space and byte."""

    @cache
    def spell(token: int) -> str:
        surface = spelling.surface(token)
        return surface if token in spelling.special else one_line(show_token(surface, b"")[0])

    return spell


def _telling(view: LaneView) -> Telling:
    return Telling(view.lane.method, view.lane.settings, visible(view.spelling), view.spelling.eos)


def _rule(method: str, settings: DecodingSettings) -> Rule:
    return "tree" if method == "mtad" and settings.tree_verification else method


def _lane(view: LaneView, packed: Sequence[str]) -> Data:
    threshold = view.lane.settings.threshold if view.lane.method == "mtad" else None
    return {
        "title": view.title,
        "method": view.lane.method,
        "rule": _rule(view.lane.method, view.lane.settings),
        "threshold": threshold,
        "steps": list(packed),
    }


def _width(telling: Telling) -> int:
    settings = telling.settings
    if telling.method == "mtjd":
        return min(settings.best_blocks, MOST_BLOCKS + 1) if settings.temperature else 1
    # of a verified tree, a beam that died may be chosen: then all that lived on stand beside it
    return settings.beam_width + (telling.bar != "Q") if telling.method == "mtad" else 1


def _choice(step: Step, depth: int, spell: Spell) -> Data:
    token = step.emitted[depth]
    return {
        "name": f"{depth + 1} of {len(step.emitted)}: {shorten(spell(token.token), COLUMNS)} ({token.origin})",
        "note": _note(step, depth),
        "figure": next_token(step, depth, spell),
        "table": candidate_table(step, depth, spell),
        "alternatives": [[c.token, shorten(spell(c.token), COLUMNS)] for c in _alternatives(step, depth)],
    }


def _alternatives(step: Step, depth: int) -> list[Candidate]:
    """The likeliest tokens that could stand in place of the one that was taken."""
    choice, taken = step.choices[depth], step.emitted[depth].token
    return [c for c in shown_candidates(choice.top, taken) if c.token != taken][:ALTERNATIVES]


def _note(step: Step, depth: int) -> str:
    choice = step.choices[depth]
    bounds = overlap(choice.top)
    if bounds is None:
        return f"Entropy of p: {choice.entropy_p:.2f} nats. The draft was not asked here."
    least, most = (number(bound) for bound in bounds)
    common = least if least == most else f"{least} to {most}"
    note = f"Overlap Σ min(p̃, q̃) = {common}. Entropy: p {choice.entropy_p:.2f}, q {choice.entropy_q or 0:.2f} nats."
    taken = [candidate for candidate in choice.top if candidate.token == step.emitted[depth].token]
    left = residual(step, depth, taken)
    return note if left is None else f"{note} In the residual the token has {number(left[0])}."


def _comparison(verdict: Verdict, rule: Rule) -> tuple[str, ...]:
    """What was compared and what with; of typical acceptance the former is p, which has a column already."""
    if rule == "speculative":
        return number(ratio(verdict.log_p, verdict.log_q)), _figure(verdict.uniform)
    bar = number(verdict.threshold or 0.0)
    return (bar,) if rule == "typical" else (number(ratio(verdict.joint_log_p, verdict.joint_log_q)), bar)


def _outcome(verdict: Verdict) -> str:
    if verdict.accepted:
        return "kept" if verdict.passes else "rescued"
    return "not tested" if verdict.threshold is None and verdict.uniform is None else "dropped"


def _figure(value: float | None) -> str:
    return "–" if value is None else number(value)


def _null(value: float) -> float | None:
    return value if isfinite(value) else None
