"""Who takes part in a bench: our lanes, written as everywhere, and peers, written alike."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from decoding.bench.attempt import Attempt
from decoding.bench.peers import PEERS, Peer
from decoding.context import Spent
from decoding.decode import Decoding
from decoding.lane import Lane
from decoding.methods import METHODS
from decoding.pair import ModelPair
from decoding.settings import DecodingSettings
from decoding.trace import Step

DEFAULT = (
    "single_token",
    "speculative",
    "mtad",
    "mtad,draft_length=2,threshold=0.1",
    "typical,threshold=0.1",
    "generate",
    "assisted",
    "assisted,draft_length=4",
    "beams",
)


@dataclass(frozen=True)
class Contestant:
    """One who takes part.

    Attributes:
        name: as it is written, "mtad,threshold=0.1" or "assisted,draft_length=4".
        title: what people call it.
        attempt: runs it once on a prompt with a seed.
    """

    name: str
    title: str
    attempt: Callable[[str, int], Attempt]


def contestant(name: str, pair: ModelPair, plain: ModelPair, settings: DecodingSettings) -> Contestant:
    """The contestant of a name; its settings replace those of `settings`.

    Args:
        pair: what our lanes run on.
        plain: what peers run on: the same weights, as transformers loads them.

    Raises:
        ValueError: there is no such method, peer or setting.
    """
    if name.split(",")[0].strip() in PEERS:
        return _peer(name, plain, settings)
    lane = Lane.parse(name, settings)
    if METHODS[lane.method].drafts and pair.draft is None:
        raise ValueError(f"{METHODS[lane.method].title} needs a draft model beside the target.")

    def attempt(prompt: str, seed: int) -> Attempt:
        made = lane.settings.model_copy(update={"seed": seed})
        return _run(Decoding(lane.method, pair, prompt, made), drafts=METHODS[lane.method].drafts)

    return Contestant(name, _title(lane.title, name), attempt)


def _peer(name: str, plain: ModelPair, settings: DecodingSettings) -> Contestant:
    peer, *changes = (part.strip() for part in name.split(","))
    changed = {setting: value for setting, _, value in (change.partition("=") for change in changes)}
    made = DecodingSettings.model_validate({**dict(settings), **changed})
    length = made.draft_length if "draft_length" in changed else None
    return Contestant(name, _title(PEERS[peer], name), Peer(peer, plain, made, length))


def _title(title: str, name: str) -> str:
    """The title with what the name adds to it."""
    changes = name.partition(",")[2]
    return f"{title} · {changes.replace('_', ' ').replace('=', ' ').replace(',', ', ')}" if changes else title


def _run(decoding: Decoding, *, drafts: bool) -> Attempt:
    started = time.perf_counter()
    first = 0.0
    for _ in decoding:
        first = first or time.perf_counter() - started
    steps = decoding.steps
    verdicts = [verdict for step in steps for verdict in step.verdicts]
    return Attempt(
        tokens=[token.token for step in steps for token in step.emitted],
        first_token_seconds=first,
        target=sum((_spent(step, "target") for step in steps), Spent()),
        draft=sum((_spent(step, "draft") for step in steps), Spent()),
        drafted=len(verdicts) if drafts else None,
        accepted=sum(verdict.accepted for verdict in verdicts) if drafts else None,
    )


def _spent(step: Step, model: str) -> Spent:
    return Spent(*(getattr(step.cost, f"{model}_{name}") for name in ("passes", "tokens", "seconds")))
