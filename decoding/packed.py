"""Weights packed in float16 for the CPU, behind activations in float32.

A CPU spends a forward pass reading weights: half the bytes take half the time, and FBGEMM's kernel for few rows is far
quicker than that for float32. Every token's result stays its own (int8's does not: it scales activations over the block).
"""

from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from decoding.fused import fused

PACKED = "float16-packed"


class PackedLinear(nn.Module):
    """x Wᵀ + b, with W and b packed in float16.

    Args:
        weight: (out, in).
        bias: (out,).
    """

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        whole = weight.detach().float().contiguous()
        self._packed = torch.ops.quantized.linear_prepack_fp16(whole, None if bias is None else bias.detach().float())

    def forward(self, activations: Tensor) -> Tensor:
        """(…, in) to (…, out), float32."""
        return torch.ops.quantized.linear_dynamic_fp16(activations, self._packed)  # type: ignore[no-any-return]


class HalfEmbedding(nn.Module):
    """An embedding that is kept in float16 and read as float32.

    Args:
        weight: (vocabulary, width).
    """

    weight: Tensor

    def __init__(self, weight: Tensor, padding_idx: int | None = None) -> None:
        super().__init__()
        self.padding_idx = padding_idx
        self.register_buffer("weight", weight.detach().half().clone())  # its file is not to stay mapped

    def forward(self, ids: Tensor) -> Tensor:
        """(…) ids to (…, width), float32."""
        return functional.embedding(ids, self.weight).float()


@cache
def can_pack() -> bool:
    """Whether this machine's torch has the kernel, and the kernel computes what it should."""
    linear = nn.Linear(8, 4)
    ones = torch.ones(2, 8)
    try:
        packed = PackedLinear(linear.weight, linear.bias)(ones)
    except (RuntimeError, NotImplementedError, AttributeError):
        return False
    return torch.allclose(packed, linear(ones), atol=1e-2)


def pack(model: PreTrainedModel) -> PreTrainedModel:
    """Pack a model's linear layers, its head too, in place; what is not packed becomes float32.

    Its weights may come in any dtype. An embedding of the usual kind is kept in float16 too.

    Raises:
        RuntimeError: this machine cannot; see `can_pack`.
    """
    embedding = model.get_input_embeddings()

    def packed(module: nn.Module) -> nn.Module | None:
        if isinstance(module, nn.Linear):
            return PackedLinear(module.weight, module.bias)
        if isinstance(module, Conv1D):
            return PackedLinear(module.weight.T, module.bias)
        if module is embedding and type(module) is nn.Embedding:  # others do more than look up
            return HalfEmbedding(module.weight, module.padding_idx)
        return None

    _replace(model, fused)
    _replace(model, packed)
    for rest in model.parameters():
        rest.data = rest.data.float()
    return model


def _replace(model: nn.Module, other: Callable[[nn.Module], nn.Module | None]) -> None:
    """Put in the place of each module inside `model` what `other` gives for it, if anything."""
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if replacement := other(child):
                setattr(parent, name, replacement)
