"""One layer's keys and values, with room to spare: growing, cutting back and keeping a path copy what is new, not what is there."""

from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import Cache, DynamicLayer

LEAST = 64  # slots of a first buffer; each later one is twice as large


class SlotLayer(DynamicLayer):
    """A `DynamicLayer` whose `keys` and `values`, (batch, heads, slots, width), are the beginning of larger buffers."""

    _key_buffer: Tensor
    _value_buffer: Tensor

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Append slots; returns all keys and values."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        start = self.get_seq_length()
        self._make_room(start + key_states.shape[-2], key_states, value_states)
        self._write(start, key_states, value_states)
        return self.keys, self.values

    @torch.inference_mode()
    def keep(self, start: int, slots: Tensor) -> None:
        """Keep what stands before `start`, behind it these slots, ascending, and nothing else."""
        self._write(start, self.keys.index_select(-2, slots), self.values.index_select(-2, slots))

    def _write(self, start: int, keys: Tensor, values: Tensor) -> None:
        end = start + keys.shape[-2]
        self._key_buffer[..., start:end, :] = keys
        self._value_buffer[..., start:end, :] = values
        self.keys, self.values = self._key_buffer[..., :end, :], self._value_buffer[..., :end, :]

    def _make_room(self, length: int, keys: Tensor, values: Tensor) -> None:
        start = self.get_seq_length()
        if start and length <= self._key_buffer.shape[-2]:
            return
        room = max(LEAST, 2 * length)
        buffers = [like.new_empty(*like.shape[:-2], room, like.shape[-1]) for like in (keys, values)]
        if start:
            buffers[0][..., :start, :] = self.keys
            buffers[1][..., :start, :] = self.values
        self._key_buffer, self._value_buffer = buffers


def slot_cache() -> Cache:
    """An empty cache of a model; every layer keeps the whole text.

    Sliding-window layers too: what lies outside a window is masked, and a cut can bring it back into view.
    """
    return Cache(layer_class_to_replicate=SlotLayer)
