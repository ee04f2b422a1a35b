"""The laws of `plain`, from far less work: all texts that share beginnings go through one pass, as a tree.

Still no cache and nothing of `decoding/`: the texts are packed into one row, where a mask lets every token see just the
tokens before it in its own text. `test_audit.py` compares the two ways, and the full audit does so on every trace.
"""

from collections.abc import Iterable

import torch
from torch import Tensor

from tests.audit.plain import Text


def packed_laws(model: torch.nn.Module, texts: Iterable[Text]) -> dict[Text, Tensor]:
    """The log-law after each text, (vocabulary,) float32, from one pass without any cache."""
    wanted = sorted(set(texts), key=len)
    slots: dict[Text, int] = {}
    for text in wanted:
        for end in range(1, len(text) + 1):
            slots.setdefault(text[:end], len(slots))
    sees = torch.zeros(len(slots), len(slots), dtype=torch.bool)
    for text, slot in slots.items():
        if len(text) > 1:
            sees[slot] = sees[slots[text[:-1]]]
        sees[slot, slot] = True
    mask = torch.zeros(sees.shape).masked_fill(~sees, torch.finfo(torch.float32).min)
    with torch.inference_mode():
        logits = model(
            input_ids=torch.tensor([[text[-1] for text in slots]]),
            position_ids=torch.tensor([[len(text) - 1 for text in slots]]),
            attention_mask=mask[None, None],
            use_cache=False,
            logits_to_keep=torch.tensor([slots[text] for text in wanted]),
        ).logits[0]
    return dict(zip(wanted, logits.float().log_softmax(-1), strict=True))
