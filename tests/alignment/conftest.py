"""A tiny random target and conversations that it wrote."""

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from decoding.alignment.data import ChatTokens, Conversations, write_conversations

VOCABULARY = 40
CHAT = ChatTokens(start=[0, 3, 4], to_answer=[5, 6], to_user=[5, 7], end=1, specials=[1, 2])


@pytest.fixture(scope="session")
def target() -> LlamaForCausalLM:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        tie_word_embeddings=True,
        initializer_range=0.3,
    )
    return LlamaForCausalLM(config).eval()


@pytest.fixture(scope="session")
def conversations(target: LlamaForCausalLM) -> Conversations:
    settings = [row % 4 for row in range(12)]
    return Conversations(**write_conversations(target, CHAT, settings, 30, torch.Generator().manual_seed(1)))
