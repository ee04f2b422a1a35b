"""A step, said in words with its own numbers: what was drafted, what was kept, why, and what came next."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, inf

from app.figures.text import Spell, number, ratio, shorten
from app.narration import count
from decoding.settings import DecodingSettings
from decoding.trace import Emitted, Step, Verdict

MOST_DIGITS = 9


@dataclass(frozen=True)
class Telling:
    """What has to be known of a run to tell its steps.

    Attributes:
        spell: how a token is written, see `app.figures.text`.
        eos_ids: the tokens that end a text.
    """

    method: str
    settings: DecodingSettings
    spell: Spell
    eos_ids: frozenset[int]

    @property
    def greedy(self) -> bool:
        """Whether nothing is drawn: temperature 0."""
        return self.settings.temperature == 0

    @property
    def bar(self) -> str:
        """What the rule of MTAD compares P with: Q, or the largest Q of a depth where the tree is verified."""
        return "max Q" if self.method == "mtad" and self.settings.tree_verification else "Q"

    def token(self, token: int) -> str:
        """A token in quotation marks."""
        return f"“{shorten(self.spell(token), 40)}”"


def words(step: Step, telling: Telling) -> str:
    """The step in one to four short sentences."""
    tell = _forced if step.emitted and step.emitted[0].origin == "forced" else TELLERS[telling.method]
    told = tell(step, telling)
    return " ".join([*told, *_ending(step, telling)])


def _forced(step: Step, telling: Telling) -> list[str]:
    last = step.emitted[-1]
    named = f"{telling.token(last.token)}, of probability p = {number(exp(last.log_p))} there,"
    if len(step.emitted) == 1:
        return [f"{named} was put first by the reader; the method goes on from it."]
    before = count(len(step.emitted) - 1, "token")
    return [
        f"After {before} of the lane it branches off, {named} was put in by the reader; the method goes on from it."
    ]


def _single_token(step: Step, telling: Telling) -> list[str]:
    return [
        f"{telling.token(token.token)} is {_most_probable(step, i)}."
        if telling.greedy
        else f"{telling.token(token.token)} was drawn from the target's law, where it has {_weight(step, i)}."
        for i, token in enumerate(step.emitted)
    ]


def _speculative(step: Step, telling: Telling) -> list[str]:
    verdicts = step.verdicts
    refused = next((verdict for verdict in verdicts if not verdict.accepted), None)
    if refused is None:
        first = f"{_all(verdicts)} drafted and kept: {_why_all_were_kept(verdicts, telling)}."
        return [first, *_next(step, telling)]
    kept = refused.depth - 1
    first = f"{count(len(verdicts), 'token')} drafted, {kept or 'none'} kept."
    return [first, _why_refused(refused, telling), *_next(step, telling)]


def _why_all_were_kept(verdicts: Sequence[Verdict], telling: Telling) -> str:
    if telling.greedy:
        return "each is the target's most probable token" if len(verdicts) > 1 else "it is the target's most probable"
    if len(verdicts) == 1:
        u, bar = apart(verdicts[0].uniform or 0.0, ratio(verdicts[0].log_p, verdicts[0].log_q))
        return f"the draw u = {u} was below p/q = {bar}"
    return "at every depth the draw u was below p/q"


def _why_refused(verdict: Verdict, telling: Telling) -> str:
    named = f"{telling.token(verdict.token)} at depth {verdict.depth} was refused"
    if telling.greedy:
        return f"{named}: it is not the target's most probable token."
    if verdict.log_p == -inf:
        return f"{named}: the target's law gives it p = 0."
    u, bar = apart(verdict.uniform or 0.0, ratio(verdict.log_p, verdict.log_q))
    return f"{named}: the draw u = {u} was not below p/q = {bar}."


def _typical(step: Step, telling: Telling) -> list[str]:
    verdicts = step.verdicts
    refused = next((verdict for verdict in verdicts if not verdict.accepted), None)
    if refused is None:
        why = (
            "each is likelier under the target than is asked there" if len(verdicts) > 1 else _likely(verdicts[0], ">")
        )
        return [f"{_all(verdicts)} drafted and kept: {why}.", *_next(step, telling)]
    kept = refused.depth - 1
    why = f"{telling.token(refused.token)} at depth {refused.depth} was dropped: {_likely(refused, 'is not above')}."
    return [f"{count(len(verdicts), 'token')} drafted, {kept or 'none'} kept.", why, *_next(step, telling)]


def _likely(verdict: Verdict, relation: str) -> str:
    p, bar = apart(exp(verdict.log_p), verdict.threshold or 0.0)
    return f"p̃ = {p} {relation} the bar of {bar} there"


def _mtad(step: Step, telling: Telling) -> list[str]:
    if telling.bar != "Q":
        return [*_tree(step, telling), *_next(step, telling)]
    kept = sum(verdict.accepted for verdict in step.verdicts)
    tell = _nothing_kept if not kept else _block_kept if kept == len(step.verdicts) else _prefix_kept
    return [*tell(step.verdicts, kept), *_rescue(step.verdicts), *_next(step, telling)]


def _tree(step: Step, telling: Telling) -> list[str]:
    """What became of a tree that was verified as a whole."""
    nodes = step.draft.nodes if step.draft else ()
    verdicts, kept = step.verdicts, sum(verdict.accepted for verdict in step.verdicts)
    scored = f"{count(len(nodes), 'drafted token')} in {_branches(step)} scored in one pass"
    if not kept:
        closest = max(nodes, key=lambda node: ratio(node.joint_log_p or -inf, _largest_q(step, node.depth)))
        value, bar = apart(
            ratio(-inf if closest.joint_log_p is None else closest.joint_log_p, _largest_q(step, closest.depth)),
            telling.settings.threshold,
        )
        return [
            f"{scored}, none kept: the largest ratio of any, at depth {closest.depth}, is P/max Q = {value}, not above τ = {bar}."
        ]
    value, bar = _against_threshold(verdicts[kept - 1])
    passes = f"{count(kept, 'token')} kept: P/max Q = {value} > τ = {bar}"
    is_deepest = kept == max(node.depth for node in nodes)
    return [f"{scored}; {passes}{'' if is_deepest else ', and nothing deeper passes'}.", *_other_beam(step, kept)]


def _branches(step: Step) -> str:
    nodes = step.draft.nodes if step.draft else ()
    parents = {node.parent for node in nodes}
    return count(sum(i not in parents for i in range(len(nodes))), "path")


def _largest_q(step: Step, depth: int) -> float:
    return max(node.joint_log_q for node in (step.draft.nodes if step.draft else ()) if node.depth == depth)


def _other_beam(step: Step, kept: int) -> list[str]:
    """Whether single-beam verification would not have had this prefix."""
    if step.draft is None:
        return []
    nodes = step.draft.nodes
    parents = {node.parent for node in nodes if node.alive}
    ends = [i for i, node in enumerate(nodes) if node.alive and i not in parents]
    at: int | None = max(ends, key=lambda i: nodes[i].joint_log_q)
    best_beam = set()
    while at is not None:
        best_beam.add(at)
        at = nodes[at].parent
    return [] if step.draft.chosen[kept - 1] in best_beam else ["It is not on the draft's most probable beam."]


def _mtjd(step: Step, telling: Telling) -> list[str]:
    if step.draft is None or step.search is None:
        return []
    draft, search = step.draft, step.search
    effort = f"{count(search.evaluations, 'prefix', 'prefixes')} scored in {count(step.cost.target_passes, 'pass', 'passes')}"
    log_p = [draft.nodes[end].joint_log_p or 0.0 for end in search.blocks]
    rank = search.blocks.index(draft.chosen[-1])
    quoted = "".join(telling.spell(draft.nodes[i].token) for i in draft.chosen)
    named = f"“{shorten(quoted, 60)}” (P = {number(exp(log_p[rank]))})"
    if telling.greedy:
        return [f"{effort}: {named} is {_proven_or_not(log_p[0], step)}."]
    share = number(exp(log_p[rank]) / sum(map(exp, log_p)))
    drawn = f"{named}, number {rank + 1} of them, was drawn: it has {share} of their mass"
    return [f"{effort}: {_blocks_found(step)}.", f"{drawn}."]


def _proven_or_not(log_p: float, step: Step) -> str:
    if step.search is None or step.search.proven:
        return "the most probable block of all"
    times = number(ratio(step.search.bound, log_p))
    return f"the best block found before the budget ended; the best of all is at most {times} times as probable"


def _blocks_found(step: Step) -> str:
    if step.search is None:
        return ""
    found, proven = len(step.search.blocks), step.search.proven
    if proven == found:
        return f"the {count(found, 'most probable block')} {'are' if found > 1 else 'is'} found exactly"
    return (
        f"the budget ended with {count(found, 'block')} found, {f'the best {proven}' if proven else 'none'} of them proven; no other block has more than "
        f"P = {number(exp(step.search.bound))}"
    )


def _nothing_kept(verdicts: Sequence[Verdict], kept: int) -> list[str]:
    best = max(verdicts, key=lambda verdict: ratio(verdict.joint_log_p, verdict.joint_log_q))
    drafted = f"{count(len(verdicts), 'token')} drafted, none kept"
    if best.joint_log_p == -inf:
        return [f"{drafted}: the target's law gives the first one p = 0, and so every prefix P = 0."]
    value, bar = _against_threshold(best)
    largest = "its ratio is" if len(verdicts) == 1 else f"the largest ratio of any prefix, at depth {best.depth}, is"
    return [f"{drafted}: {largest} P/Q = {value}, not above τ = {bar}."]


def _block_kept(verdicts: Sequence[Verdict], kept: int) -> list[str]:
    value, bar = _against_threshold(verdicts[-1])
    return [f"{_all(verdicts)} drafted and kept: P/Q = {value} > τ = {bar}."]


def _prefix_kept(verdicts: Sequence[Verdict], kept: int) -> list[str]:
    value, bar = _against_threshold(verdicts[kept - 1])
    beyond = verdicts[kept]
    if verdicts[-1].joint_log_p == -inf:
        zero = next(verdict for verdict in verdicts if verdict.joint_log_p == -inf)
        rest = f"from depth {zero.depth} on the target's law gives P = 0"
    elif len(verdicts) == kept + 1:
        rest = f"all {len(verdicts)} would give {number(ratio(beyond.joint_log_p, beyond.joint_log_q))}"
    else:
        most = max(ratio(verdict.joint_log_p, verdict.joint_log_q) for verdict in verdicts[kept:])
        rest = f"longer ones give {number(most)} at most"
    return [
        f"{count(len(verdicts), 'token')} drafted. The prefix of {kept} is kept: P/Q = {value} > τ = {bar}; {rest}."
    ]


def _rescue(verdicts: Sequence[Verdict]) -> list[str]:
    rescued = [verdict for verdict in verdicts if verdict.accepted and not verdict.passes]
    if not rescued:
        return []
    depths = _enumerate([str(verdict.depth) for verdict in rescued])
    ratios = _enumerate([number(ratio(verdict.joint_log_p, verdict.joint_log_q)) for verdict in rescued])
    fail = "prefixes of {} fail" if len(rescued) > 1 else "prefix of {} fails"
    return [f"A rescue: the {fail.format(depths)} alone ({ratios}), but the longer one passes."]


def _next(step: Step, telling: Telling) -> list[str]:
    """What stands behind the kept part; nothing, if the kept part ended the text or was cut."""
    if not step.emitted or step.emitted[-1].origin == "accepted":
        return []
    last, i = step.emitted[-1], len(step.emitted) - 1
    return [f"{telling.token(last.token)} {_origin(last, step, i, telling)}."]


def _origin(token: Emitted, step: Step, i: int, telling: Telling) -> str:
    if token.origin == "forced":
        return "was put there by the reader"
    where = {"resampled": "comes in its place", "bonus": "comes on top", "sampled": "comes next"}[token.origin]
    if telling.greedy:
        return f"{where}: it is {_most_probable(step, i)}"
    if token.origin == "resampled":
        return f"{where}, drawn from what p̃ has above q̃ ({_weight(step, i)})"
    return f"{where}, drawn from the target's law ({_weight(step, i)})"


def _ending(step: Step, telling: Telling) -> list[str]:
    """How the text ended, if it did, and what that cut off."""
    if not step.emitted:
        return []
    written = step.start + len(step.emitted)
    cut = f"; {count(len(step.discarded), 'token')} behind it discarded" if step.discarded else ""
    if step.emitted[-1].token in telling.eos_ids:
        return [f"{telling.token(step.emitted[-1].token)} ends the text{cut}."]
    if step.discarded and written >= telling.settings.max_new_tokens:
        return [f"The limit of {count(telling.settings.max_new_tokens, 'token')} is reached{cut}."]
    return [f"A stop string appeared{cut}."] if step.discarded else []


def _weight(step: Step, i: int) -> str:
    taken = next(c for c in step.choices[i].top if c.token == step.emitted[i].token)
    return f"p̃ = {number(taken.p_warped)}"


def _most_probable(step: Step, i: int) -> str:
    return f"the target's most probable token (p = {number(exp(step.emitted[i].log_p))})"


def _all(verdicts: Sequence[Verdict]) -> str:
    return {1: "1 token", 2: "Both tokens"}.get(len(verdicts), f"All {len(verdicts)} tokens")


def _against_threshold(verdict: Verdict) -> tuple[str, str]:
    return apart(ratio(verdict.joint_log_p, verdict.joint_log_q), verdict.threshold or 0.0)


def apart(first: float, second: float) -> tuple[str, str]:
    """Two figures with as many digits as it takes to tell them apart.

    >>> apart(0.5001, 0.5), apart(0.62, 0.5)
    (('0.5001', '0.5'), ('0.62', '0.5'))
    """
    for digits in range(3, MOST_DIGITS):
        written = number(first, digits), number(second, digits)
        if written[0] != written[1]:
            break
    return written


def _enumerate(items: Sequence[str]) -> str:
    return " and ".join([", ".join(items[:-1]), items[-1]] if len(items) > 1 else items)


TELLERS: dict[str, Callable[[Step, Telling], list[str]]] = {
    "single_token": _single_token,
    "speculative": _speculative,
    "mtad": _mtad,
    "mtjd": _mtjd,
    "typical": _typical,
}
