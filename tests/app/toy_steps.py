"""Steps that a method really makes, on toy models whose laws are written down."""

from collections.abc import Mapping, Sequence

from decoding.methods import METHODS
from decoding.run import Run
from decoding.settings import DecodingSettings
from decoding.streams import Streams
from decoding.toy import tabled
from decoding.trace import Step

Laws = Mapping[tuple[int, ...], Sequence[float]]

# Eight tokens. The draft's likeliest chain is 1, 2, 3, 4; the target finds only 2 unlikely: ratios .8333, .0333, .05, .075.
GOLDEN_Q: Laws = {
    (): [0.1, 0.6, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05],
    (1,): [0.1, 0.1, 0.5, 0.1, 0.05, 0.05, 0.05, 0.05],
    (2,): [0.05, 0.05, 0.05, 0.6, 0.1, 0.05, 0.05, 0.05],
    (3,): [0.05, 0.05, 0.05, 0.05, 0.6, 0.1, 0.05, 0.05],
}
GOLDEN_P: Laws = {
    (): [0.2, 0.5, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05],
    (1,): [0.2, 0.1, 0.02, 0.28, 0.1, 0.1, 0.1, 0.1],
    (2,): [0.02, 0.02, 0.02, 0.9, 0.01, 0.01, 0.01, 0.01],
    (3,): [0.02, 0.02, 0.02, 0.02, 0.9, 0.01, 0.005, 0.005],
}
PLAIN = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "max_new_tokens": 12}


def settings(**changes: object) -> DecodingSettings:
    """Settings that leave the laws as they are, but for what is changed."""
    return DecodingSettings.model_validate(PLAIN | changes)


def play(
    method: str, p: Laws, q: Laws, chosen: DecodingSettings, eos_ids: frozenset[int] = frozenset(), prompt: int = 7
) -> list[Step]:
    """The steps of a method after a prompt of one token."""
    target, draft = tabled(p).open(), tabled(q).open()
    run = Run(target, draft, [prompt], chosen, Streams.seeded(chosen.seed, method), eos_ids)
    return list(METHODS[method].steps(run))
