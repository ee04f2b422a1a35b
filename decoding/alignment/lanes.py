"""Lanes: what a draft is worth in the real methods, beside what its acceptance rate predicts."""

from collections.abc import Sequence
from dataclasses import dataclass

from transformers import PreTrainedTokenizerBase

from decoding.alignment.data import USER, Conversations
from decoding.decode import decode
from decoding.pair import ModelPair
from decoding.settings import DecodingSettings


@dataclass(frozen=True)
class LaneFigures:
    """Figures of one method over all prompts.

    Attributes:
        tokens_per_target_pass: block efficiency, prefill apart.
        kept: accepted over drafted tokens; of a block, all after the first refusal count as refused.
    """

    tokens_per_target_pass: float
    kept: float


def first_prompts(data: Conversations, tokenizer: PreTrainedTokenizerBase) -> list[str]:
    """What the user says first in each conversation."""
    prompts = []
    for tokens, writers in zip(data.tokens.tolist(), data.writers.tolist(), strict=True):
        began = writers.index(USER)
        ended = tokens.index(tokenizer.eos_token_id, began) if tokenizer.eos_token_id in tokens[began:] else len(tokens)
        prompts.append(str(tokenizer.decode(tokens[began:ended])))
    return prompts


def run_lane(method: str, pair: ModelPair, prompts: Sequence[str], settings: DecodingSettings) -> LaneFigures:
    """Run a method on every prompt, each with a seed of its own."""
    runs = [
        decode(method, pair, prompt, settings.model_copy(update={"seed": seed})).result.metrics
        for seed, prompt in enumerate(prompts)
    ]
    tokens, passes, drafted, accepted = (
        sum(getattr(run, name) for run in runs) for name in ("tokens", "target_passes", "drafted", "accepted")
    )
    return LaneFigures(tokens / passes, accepted / drafted)


def predicted_tokens_per_pass(acceptance_rate: float, draft_length: int) -> float:
    """(1 − α^{γ+1})/(1 − α), as if tokens were accepted independently with rate α (Leviathan et al. 2023).

    >>> predicted_tokens_per_pass(0.5, 4)
    1.9375
    """
    return sum(acceptance_rate**depth for depth in range(draft_length + 1))
