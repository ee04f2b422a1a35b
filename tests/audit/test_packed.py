"""Packed passes give the laws of plain ones."""

import random

import pytest
import torch

from tests.audit.packed import packed_laws
from tests.audit.plain import plain_laws
from tests.decoding.tiny import tiny_model


@pytest.mark.parametrize("architecture", ["Llama", "Qwen2", "OPT", "GPT-2"])
def test_packed_laws_are_the_plain_ones(architecture):
    rng = random.Random(0)
    stem = tuple(rng.randrange(40) for _ in range(20))
    texts = {(*stem[: rng.randrange(1, 20)], *(rng.randrange(40) for _ in range(rng.randrange(6)))) for _ in range(50)}
    model = tiny_model(architecture)
    plain, packed = plain_laws(model, texts), packed_laws(model, texts)
    assert plain.keys() == packed.keys() == texts
    for text in texts:
        torch.testing.assert_close(packed[text], plain[text], atol=1e-4, rtol=0)
