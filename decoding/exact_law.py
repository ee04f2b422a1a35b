"""The exact law of whole texts, in closed form, where both models are small tables: for each method beside the target's.

The tables are Markov chains: the law of a token depends on the one before it alone. Then a step of a method has one law
after each symbol, and the law of a text is a product of few of them: far cheaper than walking every random branch of a
run, as `decoding.enumeration` does, which the tests compare it with.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product

from decoding.methods.acceptance import kept_prefix, typical_bar

Text = tuple[int, ...]
Law = tuple[float, ...]
TextLaw = dict[Text, float]
MOST_DRAWS = 10_000  # ways in which the beams of a step may be drawn
TOO_MANY = "These beams can be drawn in too many ways to go through: take fewer beams, symbols or drafted tokens."
ROUNDING = 1e-6  # how far the sum of a row may be from 1


class InvalidTable(ValueError):
    """A table that is no Markov chain; the message says where and why."""


class TooManyDraws(ValueError):
    """More sets of beams than can be enumerated in a moment."""


@dataclass(frozen=True)
class Chain:
    """A small model: row 0 is the law of a first token, row 1 + i that of the token after token i."""

    rows: tuple[Law, ...]

    @classmethod
    def of(cls, rows: Sequence[Sequence[float]]) -> "Chain":
        """A checked table, (symbols + 1, symbols).

        Raises:
            InvalidTable: it has another shape, or a row is no law.

        >>> Chain.of([[0.5, 0.5], [1, 0], [0.2, 0.8]]).after((0, 1))
        (0.2, 0.8)
        """
        if not rows or any(len(row) != len(rows) - 1 for row in rows):
            raise InvalidTable(
                "A table of n symbols has n + 1 rows of n probabilities: one for the start, one after each."
            )
        for number, row in enumerate(rows):
            where = "at the start" if number == 0 else f"after symbol {number}"
            if any(not math.isfinite(p) or p < 0 or p > 1 for p in row):
                raise InvalidTable(f"The law {where} holds {_culprit(row)}: probabilities lie between 0 and 1.")
            if abs(math.fsum(row) - 1) > ROUNDING:
                raise InvalidTable(f"The law {where} sums to {math.fsum(row):.4g}, not to 1.")
        return cls(tuple(tuple(map(float, row)) for row in rows))

    @property
    def symbols(self) -> int:
        """How many tokens there are."""
        return len(self.rows) - 1

    def after(self, text: Text) -> Law:
        """The law of the token after a text."""
        return self.rows[text[-1] + 1 if text else 0]

    def probability(self, text: Text, given: Text = ()) -> float:
        """Of a text as a continuation of another one."""
        return math.prod(self.after((*given, *text[:i]))[token] for i, token in enumerate(text))


def _culprit(row: Sequence[float]) -> str:
    wrong = next(p for p in row if not math.isfinite(p) or p < 0 or p > 1)
    return f"{wrong:.4g}" if math.isfinite(wrong) else "something that is no number"


StepLaw = Callable[[Text], Mapping[Text, float]]  # from the text so far (its last token) to what a step may append


def text_law(step: StepLaw, length: int) -> TextLaw:
    """The probability of every text of `length` tokens that steps of a law write, one behind the other."""
    step = cache(step)
    law: TextLaw = defaultdict(float)
    arrived: dict[Text, float] = {(): 1.0}
    while arrived:
        text = min(arrived, key=len)
        weight = arrived.pop(text)
        for block, p in step(text[-1:]).items():
            longer = (*text, *block)[:length]
            into = law if len(longer) == length else arrived
            into[longer] = into.get(longer, 0.0) + weight * p
    return dict(law)


def target_law(p: Chain, length: int) -> TextLaw:
    """The target's own law, by the chain rule: that of single-token sampling."""
    texts = product(range(p.symbols), repeat=length)
    return {text: weight for text in texts if (weight := p.probability(text)) > 0}


def most_probable_text(p: Chain, length: int) -> Text:
    """The joint arg max; of equals the one that comes first."""
    return max(sorted(target_law(p, length)), key=p.probability)


def speculative_step(p: Chain, q: Chain, draft_length: int) -> StepLaw:
    """A step of speculative decoding (Leviathan et al. 2023)."""

    def replaced(own: Law, drafted: Law) -> Law:
        left = [max(a - b, 0.0) for a, b in zip(own, drafted, strict=True)]
        return tuple(value / math.fsum(left) for value in left) if any(left) else own

    return _chain_step(p, q, draft_length, lambda own, drafted, x: min(1.0, own[x] / drafted[x]), replaced)


def typical_step(p: Chain, q: Chain, draft_length: int, threshold: float) -> StepLaw:
    """A step of typical acceptance (Cai et al. 2024, Medusa), see `typical_bar`; after a refusal the target is asked anew."""

    def accepts(own: Law, drafted: Law, x: int) -> float:
        entropy = -math.fsum(one * math.log(one) for one in own if one)
        return float(own[x] > typical_bar(entropy, threshold))

    return _chain_step(p, q, draft_length, accepts, lambda own, drafted: own)


def _chain_step(
    p: Chain,
    q: Chain,
    draft_length: int,
    accepts: Callable[[Law, Law, int], float],
    replaced: Callable[[Law, Law], Law],
) -> StepLaw:
    """A step that judges drafted tokens one by one: `accepts` is the probability to keep one, `replaced` the law after a refusal."""

    def step(given: Text) -> TextLaw:
        law: TextLaw = defaultdict(float)
        kept: TextLaw = {(): 1.0}
        for _ in range(draft_length):
            longer: TextLaw = {}
            for block, weight in kept.items():
                own, drafted = p.after((*given, *block)), q.after((*given, *block))
                passing = [d * accepts(own, drafted, x) if d else 0.0 for x, d in enumerate(drafted)]
                longer |= {(*block, x): weight * mass for x, mass in enumerate(passing) if mass > 0}
                refused = weight * max(0.0, 1.0 - math.fsum(passing))
                for x, share in enumerate(replaced(own, drafted)):
                    law[*block, x] += refused * share
            kept = longer
        _add_next(law, p, given, kept)
        return {block: weight for block, weight in law.items() if weight > 0}

    return step


def _add_next(law: TextLaw, p: Chain, given: Text, kept: Mapping[Text, float]) -> None:
    """Behind each kept block comes a token of the target."""
    for block, weight in kept.items():
        for x, share in enumerate(p.after((*given, *block))):
            law[*block, x] = law.get((*block, x), 0.0) + weight * share


def mtad_step(p: Chain, q: Chain, draft_length: int, width: int, threshold: float, *, sampled: bool = True) -> StepLaw:
    """A step of MTAD (Qin et al. 2025) at temperature 1, with beams that are sampled, or else searched for.

    Raises (the step):
        TooManyDraws: the beams can be drawn in too many ways.
    """

    def step(given: Text) -> TextLaw:
        kept: TextLaw = defaultdict(float)
        for block, weight in _chosen_blocks(q, given, draft_length, width, sampled).items():
            prefixes = [block[:end] for end in range(1, draft_length + 1)]
            joint_p, joint_q = ([_log(model.probability(prefix, given)) for prefix in prefixes] for model in (p, q))
            kept[block[: kept_prefix(joint_p, joint_q, threshold)]] += weight
        law: TextLaw = {}
        _add_next(law, p, given, kept)
        return {block: weight for block, weight in law.items() if weight > 0}

    return step


def _chosen_blocks(q: Chain, given: Text, length: int, width: int, sampled: bool) -> TextLaw:
    """The law of the block that the draft puts forward: of its beams the most probable one.

    A beam's weight in the pool is proportional to its joint probability, so equals are drawn first equally often.
    """
    states: dict[tuple[Text, ...], float] = {((),): 1.0}
    ways = 0
    for _ in range(length):
        grown: dict[tuple[Text, ...], float] = defaultdict(float)
        for beams, weight in states.items():
            pool = sorted((*beam, x) for beam in beams for x in range(q.symbols) if q.after((*given, *beam))[x] > 0)
            weights = [q.probability(beam, given) for beam in pool]
            picked = _distinct_draws(weights, width) if sampled else {_largest(weights, width): 1.0}
            for indices, share in picked.items():
                grown[tuple(pool[i] for i in indices)] += weight * share
            ways += len(picked)
            if ways > MOST_DRAWS:
                raise TooManyDraws(TOO_MANY)
        states = grown
    chosen: TextLaw = defaultdict(float)
    for beams, weight in states.items():
        joint = [q.probability(beam, given) for beam in beams]
        best = [
            beam for beam, value in zip(beams, joint, strict=True) if math.isclose(value, max(joint), rel_tol=1e-12)
        ]
        for beam in best if sampled else best[:1]:
            chosen[beam] += weight / (len(best) if sampled else 1)
    return chosen


def _largest(weights: Sequence[float], count: int) -> tuple[int, ...]:
    return tuple(sorted(sorted(range(len(weights)), key=lambda i: (-weights[i], i))[:count]))


def _distinct_draws(weights: Sequence[float], count: int) -> dict[tuple[int, ...], float]:
    """The probability of every set that `count` weighted draws without replacement may give, as sorted indices.

    >>> {draw: round(p, 3) for draw, p in _distinct_draws([0.5, 0.3, 0.2], 2).items()}
    {(0, 1): 0.514, (0, 2): 0.325, (1, 2): 0.161}
    """
    total = math.fsum(weights)
    draws: dict[tuple[int, ...], float] = {(): 1.0}
    for _ in range(min(count, len(weights))):
        more: dict[tuple[int, ...], float] = defaultdict(float)
        for drawn, weight in draws.items():
            left = total - math.fsum(weights[i] for i in drawn)
            for i in range(len(weights)):
                if i not in drawn:
                    more[tuple(sorted((*drawn, i)))] += weight * weights[i] / left
        if len(more) > MOST_DRAWS:
            raise TooManyDraws(TOO_MANY)
        draws = more
    return dict(draws)


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf


def exact_joint_step(p: Chain, draft_length: int, count: int) -> StepLaw:
    """A step of MTJD, exact: one of the `count` most probable blocks, by their renormalised joint probability."""

    def step(given: Text) -> TextLaw:
        blocks = {
            block: weight
            for block in product(range(p.symbols), repeat=draft_length)
            if (weight := p.probability(block, given)) > 0
        }
        best = sorted(blocks, key=lambda block: (-blocks[block], block))[:count]
        total = math.fsum(blocks[block] for block in best)
        return {block: blocks[block] / total for block in best}

    return step


def total_variation(law: TextLaw, other: TextLaw) -> float:
    """½ Σ |law − other|: the largest difference that any set of texts shows."""
    return 0.5 * math.fsum(abs(law.get(text, 0.0) - other.get(text, 0.0)) for text in law.keys() | other.keys())


def kl_divergence(law: TextLaw, other: TextLaw) -> float:
    """Σ law · ln(law/other), in nats; infinite where `law` writes what `other` never does."""
    return math.fsum(_kl_terms(law, other))


def _kl_terms(law: TextLaw, other: TextLaw) -> Iterator[float]:
    for text, weight in law.items():
        yield weight * math.log(weight / other[text]) if other.get(text) else math.inf
