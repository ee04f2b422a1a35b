"""Joined models: a draft that ships only its own layers and borrows its target's embeddings when it is loaded.

The folder has the standard transformers layout, with two additions: `config.json` names the model whose embeddings
are borrowed under `embeddings_of`, and the weights may hold `head_ids`, the tokens that the draft can say. The head then is
the embeddings of these tokens alone, which makes it cheap; every other token has probability exactly 0.
"""

import json
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from transformers import AutoConfig, AutoModelForCausalLM, LlamaForCausalLM, PreTrainedModel

from decoding.weights import locate

LENDER_KEY = "embeddings_of"
HEAD_IDS = "head_ids"
EMBEDDINGS = "model.embed_tokens.weight"


class RestrictedHead(nn.Module):
    """A head over some tokens of the vocabulary.

    Attributes:
        ids: (tokens,) ids of the tokens it can say, ascending.
        among: the linear head over these, from the last hidden state to (tokens,) logits.
    """

    ids: Tensor

    def __init__(self, ids: Tensor, embeddings: Tensor) -> None:
        super().__init__()
        self.vocabulary, width = embeddings.shape
        self.register_buffer("ids", ids)
        self.among = nn.Linear(width, len(ids), bias=False, dtype=embeddings.dtype)
        self.among.weight = nn.Parameter(embeddings[ids].clone(), requires_grad=False)

    def forward(self, hidden: Tensor) -> Tensor:
        """(…, width) hidden states to (…, vocabulary) logits, −∞ for tokens that it cannot say."""
        logits = self.among(hidden)
        everywhere = logits.new_full((*hidden.shape[:-1], self.vocabulary), -torch.inf)
        return everywhere.index_copy(-1, self.ids, logits)


def is_joined(folder: Path) -> bool:
    """Whether the model in this folder borrows another's embeddings."""
    config = folder / "config.json"
    return config.is_file() and LENDER_KEY in json.loads(config.read_text(encoding="utf-8"))


def load_joined(folder: Path, dtype: torch.dtype) -> PreTrainedModel:
    """The model in `folder`, joined with the embeddings of the model it names.

    Returns:
        A LlamaForCausalLM on the CPU whose logits span the whole vocabulary.

    Raises:
        WeightsError: the lender's weights cannot be found.
        KeyError, ValueError, RuntimeError: the files do not fit together.
    """
    config = AutoConfig.from_pretrained(folder, local_files_only=True)
    own = load_file(folder / "model.safetensors")
    ids = own.pop(HEAD_IDS, None)
    embeddings = borrowed_embeddings(getattr(config, LENDER_KEY), dtype)
    with torch.device("meta"):
        model = LlamaForCausalLM._from_config(config, dtype=dtype)
    weights = {name: weight.to(dtype) for name, weight in own.items()}
    missing, unexpected = model.load_state_dict({**weights, EMBEDDINGS: embeddings}, strict=False, assign=True)
    if unexpected or set(missing) - {"lm_head.weight"}:
        raise ValueError(f"the weights do not fit the configuration: missing {missing}, unexpected {unexpected}")
    model.model.rotary_emb = type(model.model.rotary_emb)(
        config
    )  # computed, not stored: it was left on the meta device
    if ids is None:
        model.lm_head.weight = model.model.embed_tokens.weight
    else:
        model.lm_head = RestrictedHead(ids.long(), embeddings)
    return model.requires_grad_(False).eval()


def borrowed_embeddings(source: str, dtype: torch.dtype) -> Tensor:
    """(vocabulary, width), the input embeddings of the model named by `source`."""
    lender = AutoModelForCausalLM.from_pretrained(
        locate(source), dtype=dtype, use_safetensors=True, local_files_only=True
    )
    return lender.get_input_embeddings().weight.detach()
