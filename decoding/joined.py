"""Joined models: a draft that ships only its own layers and borrows its target's embeddings when it is loaded.

The folder has the standard transformers layout, with two additions: `config.json` names the model whose embeddings
are borrowed under `embeddings_of`, and the weights hold `head_ids`, the tokens that the draft can say. Its head is the
embeddings of these tokens alone, which makes it cheap, behind a linear map; every other token has probability exactly 0.
"""

import json
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import load_file
from torch import Tensor, nn
from transformers import AutoConfig, LlamaForCausalLM, PreTrainedModel

from decoding.weights import locate

LENDER_KEY = "embeddings_of"
HEAD_IDS, HEAD_MAP = "head_ids", "head_map"
EMBEDDINGS = "embed_tokens.weight"


class RestrictedHead(nn.Module):
    """A head over some tokens of the vocabulary.

    Attributes:
        ids: (tokens,) ids of the tokens it can say, ascending.
        map: from the last hidden state to a state that the embeddings understand; the identity at first.
        among: from there to the (tokens,) logits of `ids`: their embeddings.
    """

    ids: Tensor

    def __init__(self, ids: Tensor, embeddings: Tensor) -> None:
        super().__init__()
        self.vocabulary, width = embeddings.shape
        self.register_buffer("ids", ids)
        self.map = nn.Linear(width, width, bias=False, dtype=embeddings.dtype)
        self.map.weight = nn.Parameter(torch.eye(width, dtype=embeddings.dtype))
        self.among = nn.Linear(width, len(ids), bias=False, dtype=embeddings.dtype)
        self.among.weight = nn.Parameter(embeddings[ids].clone(), requires_grad=False)

    def forward(self, hidden: Tensor) -> Tensor:
        """(…, width) hidden states to (…, vocabulary) logits, −∞ for tokens that it cannot say."""
        logits = self.among(self.map(hidden))
        everywhere = logits.new_full((*hidden.shape[:-1], self.vocabulary), -torch.inf)
        return everywhere.index_copy(-1, self.ids, logits)


def is_joined(folder: Path) -> bool:
    """Whether the model in this folder borrows another's embeddings."""
    config = folder / "config.json"
    return config.is_file() and LENDER_KEY in json.loads(config.read_text(encoding="utf-8"))


def load_joined(folder: Path, dtype: torch.dtype | None) -> PreTrainedModel:
    """The model in `folder`, joined with the embeddings of the model it names.

    Args:
        dtype: of its weights; None leaves that as its file has it.

    Returns:
        A LlamaForCausalLM on the CPU whose logits span the whole vocabulary.

    Raises:
        WeightsError: the lender's weights cannot be found.
        KeyError, ValueError, RuntimeError: the files do not fit together.
    """
    config = AutoConfig.from_pretrained(folder, local_files_only=True)
    own = load_file(folder / "model.safetensors")
    dtype = dtype or own[HEAD_MAP].dtype
    own = {name: weight.to(dtype) for name, weight in own.items()}
    ids, head_map = own.pop(HEAD_IDS).long(), own.pop(HEAD_MAP)
    embeddings = borrowed_embeddings(getattr(config, LENDER_KEY), dtype)
    model = LlamaForCausalLM._from_config(config, dtype=dtype)
    model.lm_head = RestrictedHead(ids, embeddings)
    model.lm_head.map.weight = nn.Parameter(head_map)
    model.model.load_state_dict({**own, EMBEDDINGS: embeddings}, assign=True)
    return model.requires_grad_(False).eval()


def borrowed_embeddings(source: str, dtype: torch.dtype) -> Tensor:
    """(vocabulary, width), the input embeddings of the model named by `source`; nothing else of it is read."""
    with safe_open(locate(source) / "model.safetensors", framework="pt") as weights:
        (name,) = (key for key in weights.keys() if key.endswith(EMBEDDINGS))  # noqa: SIM118 - it is no mapping
        return weights.get_tensor(name).to(dtype)
