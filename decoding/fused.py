"""Layers of the Llama family with their small products joined into larger ones, for the CPU: fewer calls, the same sums.

A pass over one token spends as long on calling thirty layers' many small operations as on reading their weights. Query,
key and value come from one product here, gate and up from another, and all heads are rotated at once.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import Cache
from transformers.models.llama.modeling_llama import LlamaAttention, LlamaMLP
from transformers.models.mistral.modeling_mistral import MistralAttention, MistralMLP
from transformers.models.qwen2.modeling_qwen2 import Qwen2Attention, Qwen2MLP


def fused(module: nn.Module) -> nn.Module | None:
    """What computes the same as an attention or feed-forward layer with fewer calls; None if there is nothing of the kind."""
    if type(module) in (LlamaAttention, MistralAttention, Qwen2Attention):
        return FusedAttention(module)
    return FusedMLP(module) if type(module) in (LlamaMLP, MistralMLP, Qwen2MLP) else None


class FusedAttention(nn.Module):
    """Grouped-query attention with rotary positions, in inference alone; masks and cache are those of transformers."""

    def __init__(self, own: Any) -> None:
        super().__init__()
        self.qkv = _joined(own.q_proj, own.k_proj, own.v_proj)
        self.out = own.o_proj
        self._layer, self._scale, self._width = own.layer_idx, own.scaling, own.head_dim
        self._heads, self._groups = (linear.out_features // own.head_dim for linear in (own.q_proj, own.k_proj))

    def forward(
        self,
        hidden_states: Tensor,
        position_embeddings: tuple[Tensor, Tensor],
        attention_mask: Tensor | None = None,
        cache: Cache | None = None,
        **_: Any,
    ) -> tuple[Tensor, None]:
        """(rows, tokens, hidden) to the same shape; the attention weights are not kept."""
        rows, tokens, _width = hidden_states.shape
        heads = self.qkv(hidden_states).view(rows, tokens, -1, self._width).transpose(1, 2)
        turned, values = heads.split([self._heads + self._groups, self._groups], dim=1)
        queries, keys = _rotate(turned, *position_embeddings).split([self._heads, self._groups], dim=1)
        if cache is not None:
            keys, values = cache.update(keys, values, self._layer)
        seen = functional.scaled_dot_product_attention(
            queries,
            keys,
            values,
            attn_mask=attention_mask,
            is_causal=attention_mask is None and tokens > 1,
            scale=self._scale,
            enable_gqa=self._groups < self._heads,
        )
        return self.out(seen.transpose(1, 2).reshape(rows, tokens, -1)), None


class FusedMLP(nn.Module):
    """The gated feed-forward layer."""

    def __init__(self, own: Any) -> None:
        super().__init__()
        self.gate_up = _joined(own.gate_proj, own.up_proj)
        self.down = own.down_proj
        self._act = own.act_fn

    def forward(self, hidden_states: Tensor) -> Tensor:
        """(…, hidden) to the same shape."""
        gate, up = self.gate_up(hidden_states).chunk(2, dim=-1)
        return self.down(self._act(gate) * up)  # type: ignore[no-any-return]


def _rotate(heads: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary positions (Su et al. 2021): heads are (rows, heads, tokens, width), cos and sin (rows, tokens, width)."""
    first, second = heads.chunk(2, dim=-1)
    return heads * cos.unsqueeze(1) + torch.cat((-second, first), dim=-1) * sin.unsqueeze(1)


def _joined(*linears: nn.Linear) -> nn.Linear:
    """One layer whose outputs are those of several, one behind the other."""
    weight = torch.cat([linear.weight.detach() for linear in linears])
    whole = nn.Linear(1, 1, bias=linears[0].bias is not None)
    whole.weight = nn.Parameter(weight, requires_grad=False)
    if linears[0].bias is not None:
        whole.bias = nn.Parameter(torch.cat([linear.bias.detach() for linear in linears]), requires_grad=False)
    return whole
