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
from decoding.packed import PACKED, can_pack, pack
from decoding.trace import ModelInfo
from decoding.weights import WeightsError, locate

CUTTABLE = {"full_attention", "sliding_attention"}
DTYPES = {PACKED: None, "float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}


class UnsupportedModel(Exception):
    """A model that these methods cannot run; the message says which and why."""


@dataclass(frozen=True)
class Weights:
    """A model's weights.

    Attributes:
        dtype: how they are kept, one of `DTYPES`.
        parameters: how many there are; what head and embedding share is counted once.
        pass_bytes: how much of them a forward pass reads: all but an embedding that is no head, of which it reads a few rows.
    """

    dtype: str
    parameters: int
    pass_bytes: int

    @classmethod
    def of(cls, model: PreTrainedModel, dtype: str | None = None) -> "Weights":
        """Those of a model that is not packed yet; `dtype` is how they will be kept, by default as they are."""
        dtype = dtype or str(model.dtype).removeprefix("torch.")
        every, embedding = model.num_parameters(), model.get_input_embeddings().weight
        head = model.get_output_embeddings()
        is_shared = head is not None and getattr(head, "weight", None) is embedding
        size = 2 if dtype == PACKED else model.dtype.itemsize
        return cls(dtype, every, size * (every if is_shared else every - embedding.numel()))


@dataclass(frozen=True, eq=False)
class LanguageModel:
    """A model that can open contexts.

    Attributes:
        model: in evaluation mode, placed on its device or devices.
        tokenizer: its tokenizer.
        source: the name it was loaded by.
        vocabulary: how many ids are in use: head or tokenizer, whichever has fewer.
        weights: how many there are, and how they are kept.
    """

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    source: str
    vocabulary: int
    weights: Weights

    @classmethod
    def load(cls, source: str, *, device: str | None = None, dtype: str = "auto") -> "LanguageModel":
        """Load the model named by `source` (see `decoding.weights`).

        Args:
            device: "cpu", "cuda", …; by default accelerate spreads it over the GPUs there are, else the CPU.
            dtype: one of `DTYPES`; "auto" is float16-packed on a CPU that can, float32 on others, half precision on a GPU.

        Raises:
            WeightsError: its files are missing or damaged.
            UnsupportedModel: it is no causal LM, its cache cannot be cut back, or it cannot be kept in this dtype here.
        """
        folder = locate(source)
        device = device or ("auto" if torch.cuda.is_available() else "cpu")
        dtype = default_dtype(device) if dtype == "auto" else dtype
        _refuse_unless_kept(dtype, device)
        of = DTYPES[dtype]
        try:
            tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
            model = _load_joined(folder, device, of) if is_joined(folder) else _load_plain(folder, device, of)
        except (torch.OutOfMemoryError, UnsupportedModel):
            raise
        except Exception as error:  # whatever a damaged file makes the many readers below raise
            raise WeightsError(f"The files of '{source}' in {folder} cannot be read: {_first_line(error)}") from error
        _refuse_unless_cuttable(model, source)
        weights = Weights.of(model, dtype)
        if dtype == PACKED:
            pack(model)
        return cls(model.eval(), tokenizer, source, min(len(tokenizer), model.config.vocab_size), weights)

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
            parameters=self.weights.parameters,
            vocabulary=self.vocabulary,
            dtype=self.weights.dtype,
            device=", ".join(sorted({str(parameter.device) for parameter in self.model.parameters()})),
        )


def default_dtype(device: str) -> str:
    """What is fast and safe on a device."""
    if device == "cpu":
        return PACKED if can_pack() else "float32"
    return half_dtype()


def half_dtype() -> str:
    """Half precision as this machine's GPU likes it."""
    return "bfloat16" if torch.cuda.is_available() and torch.cuda.is_bf16_supported() else "float16"


def _refuse_unless_kept(dtype: str, device: str) -> None:
    if dtype not in DTYPES:
        raise UnsupportedModel(f"There is no dtype '{dtype[:40]}'. Dtypes: auto, {', '.join(DTYPES)}.")
    if dtype == PACKED and (device != "cpu" or not can_pack()):
        where = (
            "this machine's torch has no kernel for it" if device == "cpu" else f"it is for CPUs, not for '{device}'"
        )
        raise UnsupportedModel(f"Weights cannot be kept as {PACKED}: {where}. Choose float32.")


def _load_joined(folder: Path, device: str, dtype: torch.dtype | None) -> PreTrainedModel:
    return load_joined(folder, dtype).to("cuda" if device == "auto" else device)  # too small to spread


def _load_plain(folder: Path, device: str, dtype: torch.dtype | None) -> PreTrainedModel:
    config = AutoConfig.from_pretrained(folder, local_files_only=True)
    if config.is_encoder_decoder or type(config) not in MODEL_FOR_CAUSAL_LM_MAPPING:
        raise UnsupportedModel(f"{folder.name} is a {config.model_type} model, not a causal language model.")
    return AutoModelForCausalLM.from_pretrained(
        folder, dtype=dtype or "auto", device_map=device, use_safetensors=True, local_files_only=True
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
