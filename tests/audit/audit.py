"""An independent audit of traces: every number is worked out again from plain forward passes, every rule is applied again.

It shares nothing with `decoding/` but the trace's records.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from decoding.trace import Step, Trace
from tests.audit.plain import Text, plain_laws, warped

TOLERANCE = 1e-3  # in log space
LOWEST = -80.0  # logs below this are one and the same: their probabilities may have underflown
Model = Literal["p", "q"]
LawsOf = Callable[[torch.nn.Module, Iterable[Text]], dict[Text, Tensor]]


class Claim(NamedTuple):
    """What a trace says about a law: log of `token`'s probability after `text` under a model, warped or not."""

    model: Model
    warped: bool
    text: Text
    token: int
    log: float
    where: str


@dataclass
class Ledger:
    """What an audit has checked and found."""

    numbers: int = 0
    facts: int = 0
    largest: float = 0.0
    largest_where: str = ""
    ambiguous: int = 0
    failures: list[str] = field(default_factory=list)

    def number(self, where: str, recorded: float, expected: float) -> None:
        """Compare two logs (or counts)."""
        self.numbers += 1
        recorded, expected = max(recorded, LOWEST), max(expected, LOWEST)
        deviation = abs(recorded - expected)
        if deviation > self.largest:
            self.largest, self.largest_where = deviation, where
        if not deviation <= TOLERANCE:
            self.failures.append(f"{where}: the trace says {recorded}, a plain pass {expected}")

    def fact(self, where: str, holds: bool) -> None:
        """Note whether something that must hold does."""
        self.facts += 1
        if not holds:
            self.failures.append(where)


class Laws:
    """The plain laws of both models; where rounding leaves open which support a warp has, the one that fits the claims."""

    def __init__(
        self,
        trace: Trace,
        models: dict[Model, torch.nn.Module],
        claims: Sequence[Claim],
        also: tuple[Model, Collection[Text]],
        laws_of: LawsOf,
    ) -> None:
        settings = trace.settings
        self.ambiguous = 0
        self.laws: dict[tuple[Model, bool, Text], Tensor] = {}
        by_law: dict[tuple[Model, bool, Text], dict[int, float]] = defaultdict(dict)
        for claim in claims:
            by_law[claim.model, claim.warped, claim.text][claim.token] = claim.log
        for model, network in models.items():
            texts = {key[2] for key in by_law if key[0] == model} | set(also[1] if model == also[0] else ())
            for text, law in laws_of(network, texts).items():
                law = law[: trace.target.vocabulary].log_softmax(-1)
                self.laws[model, False, text] = law
                fits = warped(law, settings.temperature, settings.top_k, settings.top_p)
                self.laws[model, True, text] = min(fits, key=lambda fit: _misfit(fit, by_law[model, True, text]))
                self.ambiguous += self.laws[model, True, text] is not fits[0]

    def log(self, model: Model, is_warped: bool, text: Text, token: int) -> float:
        return float(self.laws[model, is_warped, text][token])


def _misfit(law: Tensor, claimed: dict[int, float]) -> float:
    logs = [(max(float(law[token]), LOWEST), max(log, LOWEST)) for token, log in claimed.items()]
    return max((abs(ours - theirs) for ours, theirs in logs), default=0.0)


def audit(
    trace: Trace,
    target: torch.nn.Module,
    draft: torch.nn.Module | None = None,
    eos_ids: frozenset[int] = frozenset(),
    laws_of: LawsOf = plain_laws,
) -> Ledger:
    """Recompute a trace.

    Args:
        target, draft: the transformers models it was made with; called without a cache.
        eos_ids: the tokens that end a text.
        laws_of: where the laws come from: plain passes, or packed ones (`packed_laws`).

    Returns:
        What was checked; `failures` is empty if all is as the trace says.
    """
    ledger = Ledger()
    models: dict[Model, torch.nn.Module] = {"p": target} | ({"q": draft} if draft is not None and trace.draft else {})
    befores = [(*trace.prompt.token_ids, *trace.result.token_ids[: step.start]) for step in trace.steps]
    claims = [
        claim for step, before in zip(trace.steps, befores, strict=True) for claim in _claims(trace, step, before)
    ]
    laws = Laws(trace, models, claims, _also_needed(trace, befores, eos_ids), laws_of)
    ledger.ambiguous = laws.ambiguous
    for claim in claims:
        ledger.number(claim.where, claim.log, laws.log(claim.model, claim.warped, claim.text, claim.token))
    fed_all = False
    for step, before in zip(trace.steps, befores, strict=True):
        _audit_choices(ledger, laws, step, before)
        if trace.method == "single_token":
            _audit_single(ledger, step)
        elif trace.method == "mtjd":
            _audit_exact_search(ledger, laws, trace, step, before, eos_ids)
        else:
            _audit_draft(ledger, laws, trace, step, before)
            if searches(trace):
                _audit_search(ledger, laws, trace, step, before, eos_ids)
            _audit_verdicts(ledger, laws, trace, step, before)
            _audit_emitted(ledger, laws, trace, step, before, eos_ids)
            _audit_cost(ledger, trace, step, len(_fed(trace, step, eos_ids)) + (2 if fed_all else 1))
            block = tuple(verdict.token for verdict in step.verdicts)
            fed_all = all(v.accepted for v in step.verdicts) and block not in _fed(trace, step, eos_ids)
    _audit_result(ledger, laws, trace, eos_ids)
    return ledger


def judged_warped(trace: Trace) -> bool:
    """Whether the drafted-from and judged-by laws are the warped ones (joint methods take the raw ones at temperature 0)."""
    return not (trace.method in {"mtad", "mtjd"} and trace.settings.temperature == 0)


def is_tree_verified(trace: Trace) -> bool:
    """Whether the target scored all beams."""
    return trace.method == "mtad" and trace.settings.tree_verification


def searches(trace: Trace) -> bool:
    """Whether the draft is beam search."""
    return trace.method == "mtad" and (trace.settings.draft_search == "search" or trace.settings.temperature == 0)


def _also_needed(trace: Trace, befores: Sequence[Text], eos_ids: frozenset[int]) -> tuple[Model, Collection[Text]]:
    """Texts whose whole law is needed to see that a search left out nothing better."""
    if trace.method == "mtjd":
        return "p", [before + path for step, before in zip(trace.steps, befores, strict=True) for path in _scored(step)]
    if not searches(trace):
        return "q", []
    steps = zip(trace.steps, befores, strict=True)
    return "q", [before + path for step, before in steps for path in _fed(trace, step, eos_ids)]


def _scored(step: Step) -> list[Text]:
    """The prefixes that an exact search looked behind: the empty one, and the first nodes of its tree."""
    assert step.search is not None
    return [(), *_paths(step)[: step.search.evaluations - 1]]


def _fed(trace: Trace, step: Step, eos_ids: frozenset[int]) -> list[Text]:
    """The drafted paths that the draft model was fed: all that it went on from."""
    passes = step.cost.draft_passes
    return [path for path in _paths(step) if len(path) < passes and path[-1] not in eos_ids]


def _claims(trace: Trace, step: Step, before: Text) -> Iterator[Claim]:
    """Every probability that a step holds."""
    here, is_warped = f"{trace.method} step {step.index}", judged_warped(trace)
    for i, (emitted, choice) in enumerate(zip(step.emitted, step.choices, strict=True)):
        text = before + tuple(token.token for token in step.emitted[:i])
        yield Claim("p", False, text, emitted.token, emitted.log_p, f"{here} emitted {i}")
        for candidate in choice.top:
            at = f"{here} choice {i} token {candidate.token}"
            yield Claim("p", False, text, candidate.token, _log(candidate.p), f"{at} p")
            yield Claim("p", True, text, candidate.token, _log(candidate.p_warped), f"{at} p_warped")
            if candidate.q is not None and candidate.q_warped is not None:
                yield Claim("q", False, text, candidate.token, _log(candidate.q), f"{at} q")
                yield Claim("q", True, text, candidate.token, _log(candidate.q_warped), f"{at} q_warped")
    if step.draft is None:
        return
    for i, (node, path) in enumerate(zip(step.draft.nodes, _paths(step), strict=True)):
        text = before + path[:-1]
        drafter: Model = "p" if trace.method == "mtjd" else "q"
        yield Claim(drafter, is_warped, text, node.token, node.log_q, f"{here} node {i} log_q")
        if node.log_p is not None:
            yield Claim("p", is_warped, text, node.token, node.log_p, f"{here} node {i} log_p")
    for i, verdict in enumerate(step.verdicts):
        text = before + tuple(earlier.token for earlier in step.verdicts[:i])
        yield Claim("q", is_warped, text, verdict.token, verdict.log_q, f"{here} verdict {i} log_q")
        yield Claim("p", is_warped, text, verdict.token, verdict.log_p, f"{here} verdict {i} log_p")


def _paths(step: Step) -> list[Text]:
    paths: list[Text] = []
    for node in step.draft.nodes if step.draft else ():
        paths.append((*(() if node.parent is None else paths[node.parent]), node.token))
    return paths


def _log(probability: float) -> float:
    return math.log(probability) if probability > 0 else -math.inf


def _joint(laws: Laws, model: Model, is_warped: bool, before: Text, path: Text) -> float:
    return sum(laws.log(model, is_warped, before + path[:i], token) for i, token in enumerate(path))


def _audit_choices(ledger: Ledger, laws: Laws, step: Step, before: Text) -> None:
    asked = _laws_of_the_draft(step)
    for i, (emitted, choice) in enumerate(zip(step.emitted, step.choices, strict=True)):
        where, text = f"step {step.index} choice {i}", before + tuple(token.token for token in step.emitted[:i])
        shown = {candidate.token for candidate in choice.top}
        ledger.fact(f"{where} lacks the token taken", emitted.token in shown)
        ledger.fact(
            f"{where} shows q though the draft was not asked, or hides it",
            (choice.entropy_q is not None) == (i < asked),
        )
        models: list[Model] = ["p", "q"] if i < asked else ["p"]
        for model in models:
            law = laws.laws[model, False, text]
            entropy = -sum(p * math.log(p) for p in law.double().exp().tolist() if p > 0)
            recorded = choice.entropy_p if model == "p" else choice.entropy_q
            ledger.number(f"{where} entropy_{model}", recorded if recorded is not None else math.nan, entropy)
            tenth = law.topk(10)
            missing = [
                log
                for token, log in zip(tenth.indices.tolist(), tenth.values.tolist(), strict=True)
                if token not in shown
            ]
            ledger.fact(
                f"{where} lacks one of the ten most probable of {model}",
                all(log < tenth.values[-1] + TOLERANCE for log in missing),
            )


def _laws_of_the_draft(step: Step) -> int:
    """How many of the draft's laws along the chosen block it was asked for."""
    if not step.draft or step.search:
        return 0
    passes, chosen = step.cost.draft_passes, [step.draft.nodes[i] for i in step.draft.chosen]
    # a beam that died was fed before it did, unless it ended the text: then no token follows it
    return len(chosen) + (chosen[-1].depth < passes)


def _audit_single(ledger: Ledger, step: Step) -> None:
    here = f"single_token step {step.index}"
    ledger.fact(f"{here} drafts", step.draft is None and not step.verdicts and not step.discarded)
    ledger.fact(f"{here} emits other than one sampled token", [token.origin for token in step.emitted] == ["sampled"])
    cost = step.cost
    ledger.fact(
        f"{here} cost", (cost.target_passes, cost.target_tokens, cost.draft_passes, cost.draft_tokens) == (1, 1, 0, 0)
    )


def _audit_draft(ledger: Ledger, laws: Laws, trace: Trace, step: Step, before: Text) -> None:
    assert step.draft is not None
    here, is_warped = f"{trace.method} step {step.index}", judged_warped(trace)
    nodes, paths, chosen = step.draft.nodes, _paths(step), step.draft.chosen
    for i, (node, path) in enumerate(zip(nodes, paths, strict=True)):
        ledger.number(f"{here} node {i} joint_log_q", node.joint_log_q, _joint(laws, "q", is_warped, before, path))
        if node.joint_log_p is not None:
            ledger.number(f"{here} node {i} joint_log_p", node.joint_log_p, _joint(laws, "p", is_warped, before, path))
    width = trace.settings.beam_width if trace.method == "mtad" else 1
    ledger.fact(f"{here} has two equal paths", len(set(paths)) == len(paths))
    ledger.fact(f"{here} drafts too deep", all(node.depth <= trace.settings.draft_length for node in nodes))
    ledger.fact(f"{here} has too many beams", all(n <= width for n in Counter(node.depth for node in nodes).values()))
    to_score = set(range(len(nodes))) if is_tree_verified(trace) else set(chosen)
    ledger.fact(
        f"{here} scores other nodes than it should", {i for i, node in enumerate(nodes) if node.scored} == to_score
    )
    parents = {node.parent for node in nodes}
    alive_parents = {node.parent for node in nodes if node.alive}
    ends = [i for i, node in enumerate(nodes) if node.alive and i not in alive_parents]
    ledger.fact(
        f"{here}: what is alive has a dead parent",
        all(parent is None or nodes[parent].alive for parent in alive_parents),
    )
    ledger.fact(f"{here}: the chosen block is cut short", chosen[-1] not in parents)
    if is_tree_verified(trace):
        return
    ledger.fact(f"{here}: the chosen block is no beam that reached the end", chosen[-1] in ends)
    best = max(nodes[i].joint_log_q for i in ends)
    ledger.fact(
        f"{here}: the chosen block is not the beam of largest Q", nodes[chosen[-1]].joint_log_q >= best - TOLERANCE
    )


def _audit_search(ledger: Ledger, laws: Laws, trace: Trace, step: Step, before: Text, eos_ids: frozenset[int]) -> None:
    """At each depth the beams are those of largest Q in the pool."""
    assert step.draft is not None
    paths, is_warped = _paths(step), judged_warped(trace)
    beams: dict[Text, float] = {(): 0.0}
    for depth in range(1, max(map(len, paths)) + 1):
        pool = {path: joint for path, joint in beams.items() if path and path[-1] in eos_ids}
        for path, joint in beams.items():
            if path not in pool:
                best = laws.laws["q", is_warped, before + path].topk(trace.settings.beam_width)
                pool |= {
                    (*path, token): joint + log
                    for token, log in zip(best.indices.tolist(), best.values.tolist(), strict=True)
                }
        grown = {path: pool.get(path, -math.inf) for path in paths if len(path) == depth}
        finished = {path: joint for path, joint in pool.items() if path in beams}
        rivals = sorted(
            (joint for path, joint in pool.items() if path not in grown and path not in finished), reverse=True
        )
        weakest = min(grown.values())
        ledger.fact(
            f"step {step.index} depth {depth} leaves out a better beam", not rivals or rivals[0] <= weakest + TOLERANCE
        )
        beams = dict(sorted({**grown, **finished}.items(), key=lambda item: -item[1])[: trace.settings.beam_width])


def _audit_verdicts(ledger: Ledger, laws: Laws, trace: Trace, step: Step, before: Text) -> None:
    assert step.draft is not None
    here, is_warped = f"{trace.method} step {step.index}", judged_warped(trace)
    block = tuple(step.draft.nodes[i].token for i in step.draft.chosen)
    ledger.fact(f"{here} has verdicts on another block", tuple(verdict.token for verdict in step.verdicts) == block)
    ledger.fact(f"{here} depths", [verdict.depth for verdict in step.verdicts] == list(range(1, len(block) + 1)))
    for i, verdict in enumerate(step.verdicts):
        path, where = block[: i + 1], f"{here} verdict {i}"
        rivals = [p for p in _paths(step) if len(p) == len(path)] if is_tree_verified(trace) else [path]
        bar = max(_joint(laws, "q", is_warped, before, rival) for rival in rivals)
        ledger.number(f"{where} joint_log_q", verdict.joint_log_q, bar)
        ledger.number(f"{where} joint_log_p", verdict.joint_log_p, _joint(laws, "p", is_warped, before, path))
    rules = {
        "speculative": _speculative_rule,
        "mtad": _tree_rule if is_tree_verified(trace) else _mtad_rule,
        "typical": _typical_rule,
    }
    rules[trace.method](ledger, laws, trace, step, before, block)


def _speculative_rule(ledger: Ledger, laws: Laws, trace: Trace, step: Step, before: Text, block: Text) -> None:
    tested = True
    for i, verdict in enumerate(step.verdicts):
        where = f"speculative step {step.index} verdict {i}"
        ledger.fact(f"{where} threshold", verdict.threshold is None and verdict.passes == verdict.accepted)
        ledger.fact(f"{where} was tested after a refusal, or not before it", (verdict.uniform is not None) == tested)
        if verdict.uniform is not None:
            log_p, log_q = (laws.log(model, True, before + block[:i], block[i]) for model in ("p", "q"))
            bar = math.exp(min(0.0, log_p - log_q))
            decisive = abs(verdict.uniform - bar) > TOLERANCE
            ledger.fact(f"{where} against the rule", not decisive or verdict.accepted == (verdict.uniform < bar))
        else:
            ledger.fact(f"{where} accepted untested", not verdict.accepted)
        tested = tested and verdict.accepted


def _typical_rule(ledger: Ledger, laws: Laws, trace: Trace, step: Step, before: Text, block: Text) -> None:
    tau, kept = trace.settings.threshold, True
    for i, verdict in enumerate(step.verdicts):
        where = f"typical step {step.index} verdict {i}"
        law = laws.laws["p", True, before + block[:i]].exp()
        entropy = -float(torch.special.xlogy(law, law).sum())
        bar, p = min(tau, math.sqrt(tau) * math.exp(-entropy)), float(law[block[i]])
        ledger.number(f"{where} threshold", math.log(verdict.threshold or 1.0), math.log(bar))
        decisive = p == 0 or abs(math.log(p) - math.log(bar)) > 2 * TOLERANCE
        ledger.fact(f"{where} against the rule", not decisive or verdict.passes == (p > bar))
        kept = kept and verdict.passes
        ledger.fact(f"{where} keeps other than a prefix", verdict.accepted == kept and verdict.uniform is None)


def _mtad_rule(ledger: Ledger, laws: Laws, trace: Trace, step: Step, before: Text, block: Text) -> None:
    is_warped = judged_warped(trace)
    deepest = max((i for i, verdict in enumerate(step.verdicts) if verdict.passes), default=-1)
    for i, verdict in enumerate(step.verdicts):
        where, path = f"mtad step {step.index} verdict {i}", block[: i + 1]
        log_ratio = _joint(laws, "p", is_warped, before, path) - _joint(laws, "q", is_warped, before, path)
        margin = log_ratio - math.log(trace.settings.threshold)
        ledger.fact(f"{where} threshold", verdict.threshold == trace.settings.threshold and verdict.uniform is None)
        ledger.fact(f"{where} against the rule", abs(margin) <= 2 * TOLERANCE or verdict.passes == (margin > 0))
        ledger.fact(f"{where} is not kept as far as the deepest prefix that passes", verdict.accepted == (i <= deepest))

    _audit_bound(ledger, laws, trace, step, before, block[: deepest + 1])


def _tree_rule(ledger: Ledger, laws: Laws, trace: Trace, step: Step, before: Text, block: Text) -> None:
    """The kept path is the deepest that passes, and of these the most probable, as far as rounding lets one say."""
    is_warped, here = judged_warped(trace), f"mtad step {step.index}"
    by_depth: dict[int, list[Text]] = defaultdict(list)
    for path in _paths(step):
        by_depth[len(path)].append(path)
    kept = sum(verdict.accepted for verdict in step.verdicts)
    for depth, paths in by_depth.items():
        log_ps = {path: _joint(laws, "p", is_warped, before, path) for path in paths}
        bar = max(_joint(laws, "q", is_warped, before, path) for path in paths) + math.log(trace.settings.threshold)
        most = max(log_ps.values())
        if depth > kept:
            ledger.fact(f"{here}: a node at depth {depth} passes", most <= bar + 2 * TOLERANCE)
        if depth == kept:
            own = log_ps[block[:kept]]
            ledger.fact(f"{here}: what is kept does not pass", own > bar - 2 * TOLERANCE)
            ledger.fact(f"{here}: a more probable node passes too", own >= most - TOLERANCE)
    for i, verdict in enumerate(step.verdicts):
        margin = verdict.joint_log_p - verdict.joint_log_q - math.log(trace.settings.threshold)
        ledger.fact(f"{here} verdict {i} against the rule", verdict.passes == (margin > 0))
        ledger.fact(f"{here} verdict {i} keeps other than a prefix", verdict.accepted == (i < kept))
    _audit_bound(ledger, laws, trace, step, before, block[:kept])


def _audit_bound(ledger: Ledger, laws: Laws, trace: Trace, step: Step, before: Text, kept: Text) -> None:
    """ln PPL_p < ln PPL_q + (1/j)·ln(1/τ) of the kept prefix."""
    if not kept:
        return
    log_ppl_p, log_ppl_q = (-_joint(laws, m, judged_warped(trace), before, kept) / len(kept) for m in ("p", "q"))
    bound = log_ppl_q - math.log(trace.settings.threshold) / len(kept)
    ledger.fact(
        f"{trace.method} step {step.index}: the kept prefix exceeds the bound", log_ppl_p < bound + 2 * TOLERANCE
    )


def _audit_exact_search(
    ledger: Ledger, laws: Laws, trace: Trace, step: Step, before: Text, eos_ids: frozenset[int]
) -> None:
    """The blocks found are the best: nothing that was seen and not taken has a larger joint than the bound."""
    assert step.draft is not None and step.search is not None
    here, is_warped, search = f"mtjd step {step.index}", judged_warped(trace), step.search
    paths, length = _paths(step), trace.settings.draft_length
    for i, (node, path) in enumerate(zip(step.draft.nodes, paths, strict=True)):
        for model_joint in (node.joint_log_q, node.joint_log_p):
            ledger.number(f"{here} node {i} joint", model_joint or 0.0, _joint(laws, "p", is_warped, before, path))
    found = [paths[end] for end in search.blocks]
    joints = [_joint(laws, "p", is_warped, before, path) for path in found]
    ledger.fact(f"{here}: blocks", all(len(path) == length or path[-1] in eos_ids for path in found))
    ledger.fact(f"{here}: more blocks than wanted", len(found) <= trace.settings.best_blocks)
    ledger.fact(f"{here}: order", all(a >= b - TOLERANCE for a, b in pairwise(joints)))
    proven, others = joints[: search.proven], joints[search.proven :]
    ledger.fact(f"{here}: a proven block is below the bound", all(log >= search.bound - TOLERANCE for log in proven))
    ledger.fact(f"{here}: another is above the bound", all(log <= search.bound + TOLERANCE for log in others))
    seen = set(paths)
    for prefix in _scored(step):
        best = laws.laws["p", is_warped, before + prefix].topk(min(20, trace.target.vocabulary))
        above = _joint(laws, "p", is_warped, before, prefix)
        for token, log in zip(best.indices.tolist(), best.values.tolist(), strict=True):
            left_out = (*prefix, token) not in seen
            ledger.fact(
                f"{here}: {prefix} {token} is left out", not left_out or above + log <= search.bound + TOLERANCE
            )
    block = tuple(step.draft.nodes[i].token for i in step.draft.chosen)
    decided = tuple(token.token for token in step.emitted) + step.discarded
    ledger.fact(f"{here}: writes a block that was not found", block in found and decided == block)
    ledger.fact(f"{here}: origins", {token.origin for token in step.emitted} == {"sampled"} and not step.verdicts)
    cost = step.cost
    ledger.fact(f"{here}: cost", (cost.target_tokens, cost.draft_passes) == (search.evaluations, 0))
    ledger.fact(f"{here}: budget", 1 <= cost.target_passes <= search.evaluations <= trace.settings.search_budget)


def _audit_emitted(ledger: Ledger, laws: Laws, trace: Trace, step: Step, before: Text, eos_ids: frozenset[int]) -> None:
    """Tokens, origins and what was discarded follow from the verdicts."""
    assert step.draft is not None
    here = f"{trace.method} step {step.index}"
    kept = tuple(verdict.token for verdict in step.verdicts if verdict.accepted)
    decided = tuple(token.token for token in step.emitted) + step.discarded
    origins = [token.origin for token in step.emitted]
    ledger.fact(f"{here} does not emit what it accepted", decided[: len(kept)] == kept)
    if decided[: len(kept)] != kept:
        return
    ledger.fact(f"{here} discards though the text goes on", not step.discarded or step.index == len(trace.steps) - 1)
    refused = "resampled" if trace.method == "speculative" else "sampled"
    last = "bonus" if len(kept) == len(step.verdicts) else refused
    ledger.fact(f"{here} origins {origins}", origins == (["accepted"] * len(kept) + [last])[: len(origins)])
    if len(decided) == len(kept):
        ends = step.index == len(trace.steps) - 1 and bool(kept) and kept[-1] in eos_ids
        ledger.fact(f"{here} lacks a token of the target", ends)
        return
    ledger.fact(f"{here} emits {len(decided)} tokens of {len(kept)} kept", len(decided) == len(kept) + 1)
    text = before + kept
    if len(step.emitted) == len(decided):
        log_p = laws.log("p", True, text, decided[-1])
        ledger.fact(f"{here} samples outside the target's support", log_p > -math.inf)
        if last == "resampled":
            log_q = laws.log("q", True, text, decided[-1])
            ledger.fact(f"{here} resamples where q exceeds p", log_p > log_q - TOLERANCE)


def _audit_cost(ledger: Ledger, trace: Trace, step: Step, draft_tokens: int) -> None:
    assert step.draft is not None
    where, cost, block = f"{trace.method} step {step.index} cost", step.cost, len(step.verdicts)
    deepest = max(node.depth for node in step.draft.nodes)
    scored = len(step.draft.nodes) if is_tree_verified(trace) else block
    ledger.fact(f"{where} of the target", (cost.target_passes, cost.target_tokens) == (1, 1 + scored))
    ledger.fact(f"{where}: draft tokens {cost.draft_tokens}, not {draft_tokens}", cost.draft_tokens == draft_tokens)
    # one pass more than the tree is deep where all the beams of a depth were finished ones
    ledger.fact(f"{where}: draft passes", deepest <= cost.draft_passes <= min(deepest + 1, trace.settings.draft_length))
    ledger.fact(f"{where}: seconds", cost.target_seconds + cost.draft_seconds <= cost.seconds + 1e-6)


def _audit_result(ledger: Ledger, laws: Laws, trace: Trace, eos_ids: frozenset[int]) -> None:
    """Counts, rates, perplexity and diversity, from the steps' tokens and the plain laws."""
    metrics, tokens, steps = trace.result.metrics, trace.result.token_ids, trace.steps
    prompt = trace.prompt.token_ids
    logs = [laws.log("p", False, (*prompt, *tokens[:i]), token) for i, token in enumerate(tokens)]
    verdicts = [verdict for step in steps for verdict in step.verdicts]
    kept = [verdict for verdict in verdicts if verdict.accepted]
    ledger.number("log perplexity", math.log(metrics.perplexity or math.nan), -sum(logs) / len(logs))
    ledger.number("tokens", metrics.tokens, len(tokens))
    passes = sum(step.cost.target_passes for step in steps)
    ledger.number("target passes", metrics.target_passes, passes)
    ledger.number("draft passes", metrics.draft_passes, sum(step.cost.draft_passes for step in steps))
    ledger.number("tokens per target pass", metrics.tokens_per_target_pass or 0, len(tokens) / passes)
    ledger.number("drafted", metrics.drafted, len(verdicts))
    ledger.number("accepted", metrics.accepted, len(kept))
    ledger.fact("acceptance rate of nothing", (metrics.acceptance_rate is None) == (not verdicts))
    if verdicts:
        ledger.number("acceptance rate", metrics.acceptance_rate or 0, len(kept) / len(verdicts))
    for at in metrics.acceptance_by_depth:
        ledger.number(f"drafted at {at.depth}", at.drafted, sum(verdict.depth == at.depth for verdict in verdicts))
        ledger.number(f"accepted at {at.depth}", at.accepted, sum(verdict.depth == at.depth for verdict in kept))
    for n, recorded in enumerate((metrics.distinct_1, metrics.distinct_2, metrics.distinct_3), start=1):
        grams = [tokens[i : i + n] for i in range(len(tokens) - n + 1)]
        if grams:
            ledger.number(f"distinct-{n}", recorded or 0, len(set(grams)) / len(grams))
    for name in ("seconds", "target_seconds", "draft_seconds"):
        ledger.number(name, getattr(metrics, name), sum(getattr(step.cost, name) for step in steps))
    ledger.fact("too many tokens", len(tokens) <= trace.settings.max_new_tokens)
    ledger.fact("text goes on after its end", not eos_ids & set(tokens[:-1]))
    ended, at_limit = tokens[-1] in eos_ids, len(tokens) == trace.settings.max_new_tokens
    if not trace.settings.stop and trace.result.finish_reason != "cancelled":
        ledger.fact("finish reason", trace.result.finish_reason == ("eos" if ended else "length") and ended | at_limit)
