"""LanguageModel: one causal language model with its tokenizer."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch
from transformers import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from decoding.context import CachedContext, Context, attention_kinds
from decoding.joined import is_joined, load_joined
from decoding.trace import ModelInfo
from decoding.weights import WeightsError, locate

CUTTABLE = {"full_attention", "sliding_attention"}


class UnsupportedModel(Exception):
    """A model that these methods cannot run; the message says which and why."""


@dataclass(frozen=True, eq=False)
class LanguageModel:
    """A model that can open contexts.

    Attributes:
        model: in evaluation mode, placed on its device or devices.
        tokenizer: its tokenizer.
        source: the name it was loaded by.
        vocabulary: how many ids are in use: head or tokenizer, whichever has fewer.
    """

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    source: str
    vocabulary: int

    @classmethod
    def load(cls, source: str, *, device: str | None = None, dtype: torch.dtype | None = None) -> "LanguageModel":
        """Load the model named by `source` (see `decoding.weights`).

        Args:
            device: "cpu", "cuda", …; by default accelerate spreads it over the GPUs there are, else the CPU.
            dtype: by default float32 on a CPU, half precision elsewhere.

        Raises:
            WeightsError: its files are missing or damaged.
            UnsupportedModel: it is no causal LM, or its cache cannot be cut back.
        """
        folder = locate(source)
        device = device or ("auto" if torch.cuda.is_available() else "cpu")
        dtype = dtype or default_dtype(device)
        try:
            tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
            model = _load_joined(folder, device, dtype) if is_joined(folder) else _load_plain(folder, device, dtype)
        except (torch.OutOfMemoryError, UnsupportedModel):
            raise
        except Exception as error:  # whatever a damaged file makes the many readers below raise
            raise WeightsError(f"The files of '{source}' in {folder} cannot be read: {_first_line(error)}") from error
        _refuse_unless_cuttable(model, source)
        return cls(model.eval(), tokenizer, source, min(len(tokenizer), model.config.vocab_size))

    def open(self, before_pass: Callable[[], None] = lambda: None) -> Context:
        """An empty context of this model; `before_pass` is called before every forward pass."""
        return CachedContext(self.model, self.vocabulary, before_pass)

    @property
    def context_length(self) -> int:
        """Most tokens the model can look back on; for one that tells positions by distance alone, no limit."""
        return int(getattr(self.model.config, "max_position_embeddings", sys.maxsize))

    @cached_property
    def eos_ids(self) -> frozenset[int]:
        """The tokens that end a text."""
        configured = self.model.generation_config.eos_token_id if self.model.generation_config else None
        ids = configured if isinstance(configured, list) else [configured]
        return frozenset(i for i in [*ids, self.tokenizer.eos_token_id] if i is not None)

    @cached_property
    def info(self) -> ModelInfo:
        """Which model this is, for the trace."""
        name = Path(self.source).name if Path(self.source).is_dir() else self.source
        return ModelInfo(
            name=name,
            source=self.source,
            parameters=self.model.num_parameters(),
            vocabulary=self.vocabulary,
            dtype=str(self.model.dtype).removeprefix("torch."),
            device=", ".join(sorted({str(parameter.device) for parameter in self.model.parameters()})),
        )


def default_dtype(device: str) -> torch.dtype:
    """Half precision where it is fast and safe, else float32."""
    if device == "cpu":
        return torch.float32
    return torch.bfloat16 if torch.cuda.is_available() and torch.cuda.is_bf16_supported() else torch.float16


def _load_joined(folder: Path, device: str, dtype: torch.dtype) -> PreTrainedModel:
    return load_joined(folder, dtype).to("cuda" if device == "auto" else device)  # too small to spread


def _load_plain(folder: Path, device: str, dtype: torch.dtype) -> PreTrainedModel:
    config = AutoConfig.from_pretrained(folder, local_files_only=True)
    if config.is_encoder_decoder or type(config) not in MODEL_FOR_CAUSAL_LM_MAPPING:
        raise UnsupportedModel(f"{folder.name} is a {config.model_type} model, not a causal language model.")
    return AutoModelForCausalLM.from_pretrained(
        folder, dtype=dtype, device_map=device, use_safetensors=True, local_files_only=True
    )


def _refuse_unless_cuttable(model: PreTrainedModel, source: str) -> None:
    kinds = set(attention_kinds(model))
    if model._is_stateful or not kinds <= CUTTABLE:
        raise UnsupportedModel(
            f"'{source}' is a {model.config.model_type} model: its cache holds a running state that cannot be cut back "
            "when drafted tokens are refused. Choose a model with plain attention layers."
        )


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
