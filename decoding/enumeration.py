"""The exact law of what a method writes, on models small enough to walk every random branch.

A method takes all its randomness from its streams (`decoding.streams`). Put streams in their place that are told what to
decide, and that note how probable each decision was: then running the method once for every sequence of decisions, and
adding up the products, gives its output law with no sampling error.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from decoding.run import Run
from decoding.settings import DecodingSettings
from decoding.streams import Stream, Streams
from decoding.toy import Text, ToyModel
from decoding.trace import Step
from decoding.warp import warp

Steps = Callable[[Run], Iterator[Step]]


@dataclass
class Decisions:
    """One path through a run's random branches: the decisions it is told to take, then the first option of each.

    Attributes:
        taken: the option taken at each branch so far.
        laws: at each branch, the probabilities of its options.
    """

    told: list[int] = field(default_factory=list)
    taken: list[int] = field(default_factory=list)
    laws: list[np.ndarray] = field(default_factory=list)

    def decide(self, weights: np.ndarray) -> int:
        """Take a branch whose options have these weights, (n,), float64."""
        here = len(self.taken)
        option = self.told[here] if here < len(self.told) else int(np.flatnonzero(weights)[0])
        self.taken.append(option)
        self.laws.append(weights / weights.sum())
        return option

    def probability(self, since: int = 0) -> float:
        """The product of the probabilities of all decisions from number `since` on."""
        return float(np.prod([law[option] for law, option in zip(self.laws[since:], self.taken[since:], strict=True)]))

    def next(self, since: int = 0) -> "Decisions | None":
        """The path after this one in lexicographic order that takes the same first `since` decisions."""
        for branch in reversed(range(since, len(self.taken))):
            later = np.flatnonzero(self.laws[branch][self.taken[branch] + 1 :])
            if len(later):
                return Decisions([*self.taken[:branch], self.taken[branch] + 1 + int(later[0])])
        return None


class ToldStream(Stream):
    """A stream that takes every decision from a path."""

    def __init__(self, decisions: Decisions) -> None:
        self._decisions = decisions

    def pick(self, weights: np.ndarray) -> int:
        return self._decisions.decide(weights)

    def uniform(self, split: float) -> float:
        """The smallest number that is not below `split`, or 0 for all that are."""
        below = self._decisions.decide(np.array([1.0 - split, split]))
        return 0.0 if below else split


def told_streams(decisions: Decisions) -> Streams:
    """Streams that share one path, in the order in which the method asks them."""
    stream = ToldStream(decisions)
    return Streams(draft=stream, acceptance=stream, target=stream)


@dataclass(frozen=True)
class Toys:
    """All that a run on toy models is made from, but for its randomness."""

    steps: Steps
    target: ToyModel
    draft: ToyModel | None
    prompt: Text
    settings: DecodingSettings
    eos_ids: frozenset[int] = frozenset()

    def run(self, streams: Streams) -> Run:
        """A run that has not begun."""
        draft = self.draft.open() if self.draft else None
        return Run(self.target.open(), draft, self.prompt, self.settings, streams, self.eos_ids)


def output_law(
    steps: Steps,
    target: ToyModel,
    draft: ToyModel | None,
    prompt: Text,
    settings: DecodingSettings,
    eos_ids: frozenset[int] = frozenset(),
) -> dict[Text, float]:
    """The probability of every text that a method may emit.

    Paths that have emitted the same text go on as one. That is exact for methods that carry nothing from step to step but
    the text, which all here are; it makes the work grow with the number of texts, not of paths.

    Args:
        steps: the method's generator, such as `METHODS["mtad"].steps`.
        prompt: token ids, at least one.
        eos_ids: tokens that end a text.

    Returns:
        From emitted token ids to their probability, for all that have any.
    """
    toys = Toys(steps, target, draft, prompt, settings, eos_ids)
    law: dict[Text, float] = defaultdict(float)
    arrived: dict[Text, float] = {(): 1.0}
    way_there: dict[Text, tuple[int, list[int]]] = {(): (0, [])}
    while arrived:
        text = min(arrived, key=lambda text: (len(text), text))  # nothing can arrive any more at the shortest
        weight = arrived.pop(text)
        steps_before, decisions = way_there.pop(text)
        for branch in _branches(toys, steps_before, decisions):
            if branch.finished:
                law[branch.text] += weight * branch.probability
            else:
                arrived[branch.text] = arrived.get(branch.text, 0.0) + weight * branch.probability
                way_there.setdefault(branch.text, (steps_before + 1, branch.decisions))
    return dict(law)


@dataclass(frozen=True)
class Branch:
    """What one step may lead to: the text emitted so far, whether it ends there, and how probable the step was."""

    text: Text
    finished: bool
    probability: float
    decisions: list[int]


def _branches(toys: Toys, steps_before: int, decisions: list[int]) -> Iterator[Branch]:
    """Every way in which the step after `steps_before` can go, with `decisions` leading up to it."""
    path: Decisions | None = Decisions(decisions)
    while path:
        run = toys.run(told_streams(path))
        steps = toys.steps(run)
        for _ in range(steps_before + 1):
            next(steps)
        probability = path.probability(since=len(decisions))
        yield Branch(tuple(run.emitted), run.finish_reason is not None, probability, path.taken)
        path = path.next(since=len(decisions))


def target_law(
    target: ToyModel, prompt: Text, settings: DecodingSettings, eos_ids: frozenset[int] = frozenset()
) -> dict[Text, float]:
    """The probability of every text under the warped target, by the chain rule: what lossless methods must reproduce."""
    law: dict[Text, float] = {}
    unfinished: dict[Text, float] = {(): 1.0}
    while unfinished:
        text, weight = unfinished.popitem()
        if len(text) == settings.max_new_tokens or (text and text[-1] in eos_ids):
            law[text] = weight
            continue
        next_token = warp(target.open().feed([*prompt, *text]), settings)[0].exp().tolist()
        unfinished |= {(*text, token): weight * p for token, p in enumerate(next_token) if p > 0}
    return law
