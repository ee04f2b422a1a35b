"""Peers: the `generate` of transformers, on the plain models as anyone would run it, with the same prompt and the same warp."""

import copy
import time
from dataclasses import dataclass
from typing import Any

import torch
from transformers import GenerationConfig, PreTrainedModel, set_seed
from transformers.generation import StoppingCriteria, StoppingCriteriaList

from decoding.bench.attempt import Attempt, counted
from decoding.pair import ModelPair
from decoding.prompting import prepare_prompt
from decoding.settings import DecodingSettings

PEERS = {
    "generate": "transformers generate",
    "assisted": "transformers assisted generation",
    "beams": "transformers beam sampling, target alone",
}


class _FirstToken(StoppingCriteria):
    """Stops nothing; notes when the first token had been written."""

    def __init__(self) -> None:
        self.at: float | None = None

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor, **_: Any) -> torch.BoolTensor:
        self.at = self.at or time.perf_counter()
        return torch.zeros(len(input_ids), dtype=torch.bool, device=input_ids.device)  # type: ignore[return-value]


@dataclass(frozen=True)
class Peer:
    """A way of `generate`.

    Attributes:
        name: a key of `PEERS`.
        draft_length: of assisted generation: tokens proposed a round, each of them; None leaves transformers' own choice, which
            also ends a proposal where the draft is not confident.
    """

    name: str
    pair: ModelPair
    settings: DecodingSettings
    draft_length: int | None = None

    def __call__(self, prompt: str, seed: int) -> Attempt:
        """Generate once.

        Raises:
            InvalidPrompt: the prompt cannot be run with these settings.
        """
        model, draft = self.pair.target.model, self.pair.draft.model if self.pair.draft else None
        given = torch.tensor([prepare_prompt(self.pair, prompt, self.settings).token_ids], device=model.device)
        first = _FirstToken()
        options: dict[str, Any] = {"generation_config": self._configuration(model)}
        if self.name == "assisted":
            if draft is None:
                raise ValueError("Assisted generation needs a draft model beside the target.")
            options["assistant_model"] = self._assistant(draft)
        set_seed(seed)
        started = time.perf_counter()
        with torch.inference_mode(), counted(model) as target, counted(draft or torch.nn.Identity()) as assistant:
            written = model.generate(
                given,
                attention_mask=torch.ones_like(given),
                stopping_criteria=StoppingCriteriaList([first]),
                **options,
            )
        return Attempt(
            tokens=written[0, given.shape[1] :].tolist(),
            first_token_seconds=(first.at or time.perf_counter()) - started,
            target=target.spent,
            draft=assistant.spent,
        )

    def _configuration(self, model: PreTrainedModel) -> GenerationConfig:
        chosen = self.settings
        drawing = {"temperature": chosen.temperature, "top_k": chosen.top_k, "top_p": chosen.top_p}
        return GenerationConfig(
            max_new_tokens=chosen.max_new_tokens,
            do_sample=chosen.temperature > 0,
            num_beams=chosen.beam_width if self.name == "beams" else 1,
            eos_token_id=sorted(self.pair.target.eos_ids),
            pad_token_id=min(self.pair.target.eos_ids),
            **(drawing if chosen.temperature else {}),
        )

    def _assistant(self, draft: PreTrainedModel) -> PreTrainedModel:
        """The draft, with a configuration of its own for this peer: `generate` reads it there, and writes into it."""
        draft.generation_config = copy.deepcopy(draft.generation_config) or GenerationConfig()
        fixed = self.draft_length is not None
        draft.generation_config.update(
            num_assistant_tokens=self.draft_length if fixed else None,
            num_assistant_tokens_schedule="constant" if fixed else None,
            assistant_confidence_threshold=0.0 if fixed else None,
        )
        return draft
