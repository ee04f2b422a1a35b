"""Prompts taken from conversations, and the formula that lanes are compared with."""

import pytest
import torch

from decoding.alignment.data import ANSWER, FORCED, USER, Conversations
from decoding.alignment.lanes import first_prompts, predicted_tokens_per_pass


class Letters:
    """A tokenizer of letters; 0 ends a turn."""

    eos_token_id = 0

    def decode(self, tokens: list[int]) -> str:
        return "".join(chr(96 + token) for token in tokens)


def test_first_prompts_are_the_users_own_words():
    tokens = torch.tensor([[9, 8, 9, 0, 7, 1, 2, 0], [9, 1, 2, 3, 4, 5, 6, 7]])
    writers = torch.tensor([[FORCED, USER, USER, USER, FORCED, ANSWER, ANSWER, ANSWER], [FORCED] + 7 * [USER]])
    data = Conversations(tokens, writers, *torch.empty(3, 2))
    assert first_prompts(data, Letters()) == ["hi", "abcdefg"]


@pytest.mark.parametrize(("rate", "length", "tokens"), [(0, 4, 1), (1, 4, 5), (0.5, 2, 1.75)])
def test_predicted_tokens_per_pass(rate, length, tokens):
    assert predicted_tokens_per_pass(rate, length) == tokens
