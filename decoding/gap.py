"""How far MTAD's blocks are from the best there are: such a block against the target's most probable one of its length."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from torch import Tensor

from decoding.context import Context
from decoding.language_model import LanguageModel
from decoding.methods.best_first import Path, best_blocks
from decoding.methods.searched import SearchedTree
from decoding.metrics import ratio
from decoding.settings import DecodingSettings
from decoding.trace import Trace, Verdict
from decoding.warp import warp

BUDGET = 400  # evaluations of one step's search


@dataclass(frozen=True)
class Gap:
    """A block of MTAD beside exact MTJD over the same context and length.

    Attributes:
        own: joint log-probability under the target of MTAD's block.
        best: that of the most probable block of as many tokens, or the largest found within the budget.
        bound: what the best of all cannot exceed; equal to `best` where that is proven.
        block: the tokens of the best block; fewer than `length` if an end of text is among them.
        evaluations: prefixes scored to find it.
    """

    length: int
    own: float
    best: float
    bound: float
    block: Path
    evaluations: int

    @property
    def nats(self) -> float:
        """log P(x*) − log P(block), not below 0 but for rounding."""
        return self.best - self.own

    @property
    def is_proven(self) -> bool:
        """Whether no block is more probable than the best one found."""
        return self.bound <= self.best


def block_gap(
    context: Context,
    text: Sequence[int],
    block: Sequence[Verdict],
    *,
    warp_law: Callable[[Tensor], Tensor],
    eos_ids: frozenset[int] = frozenset(),
    budget: int = BUDGET,
) -> Gap:
    """The gap of a block that a step of MTAD judged: usually of that part which it kept.

    Args:
        context: the target's, fed a part of `text` that does not reach to its last token; it is fed all but what was searched.
        text: prompt and tokens before the step.
        block: at least one token.
        warp_law: from (rows, vocabulary) log-laws to those that MTAD compared.
    """
    tree = SearchedTree(context, list(text[len(context.tokens) :]), warp_law)
    found = best_blocks(tree.laws_after, length=len(block), eos_ids=eos_ids, budget=budget)
    context.cut(len(text))
    best = found.blocks[0].log_p
    return Gap(
        length=len(block),
        own=block[-1].joint_log_p,
        best=best,
        bound=best if found.proven else found.bound,
        block=found.blocks[0].path,
        evaluations=len(found.scored),
    )


def trace_gaps(target: LanguageModel, trace: Trace, budget: int = BUDGET) -> Iterator[Gap | None]:
    """The gap of every step of an MTAD trace, under the laws that its rule compared; None where it kept nothing."""
    context, text, warp_law = target.open(), list(trace.prompt.token_ids), compared_law(trace.settings)
    for step in trace.steps:
        kept = [verdict for verdict in step.verdicts if verdict.accepted]
        yield block_gap(context, text, kept, warp_law=warp_law, eos_ids=target.eos_ids, budget=budget) if kept else None
        text += [token.token for token in step.emitted]


def compared_law(settings: DecodingSettings) -> Callable[[Tensor], Tensor]:
    """From log-laws to those that the rule of MTAD compares."""
    return (lambda log_laws: warp(log_laws, settings)) if settings.temperature else (lambda log_laws: log_laws)


@dataclass(frozen=True)
class GapSummary:
    """The gaps of many steps. A mean is over the steps that kept something; None if none did.

    Attributes:
        kept: how many steps kept something.
        tokens: tokens kept in these, on average.
        mean, largest: of the gap, in nats.
        best: the share of them whose kept block is the most probable one.
        evaluations: that the exact search took, on average.
        unproven: searches that ended with their budget.
    """

    length: int
    width: int
    steps: int
    kept: int
    tokens: float | None
    mean: float | None
    largest: float | None
    best: float | None
    evaluations: float | None
    unproven: int


ROUNDING = 1e-3  # nats: the same block, scored in passes of different shapes


def summarise(length: int, width: int, gaps: Sequence[Gap | None]) -> GapSummary:
    """The figures of the steps that were run with γ = `length` and b = `width`."""
    found = [gap for gap in gaps if gap]
    n = len(found)
    return GapSummary(
        length=length,
        width=width,
        steps=len(gaps),
        kept=n,
        tokens=ratio(sum(gap.length for gap in found), n),
        mean=ratio(sum(gap.nats for gap in found), n),
        largest=max((gap.nats for gap in found), default=None),
        best=ratio(sum(gap.nats <= ROUNDING for gap in found), n),
        evaluations=ratio(sum(gap.evaluations for gap in found), n),
        unproven=sum(not gap.is_proven for gap in found),
    )
