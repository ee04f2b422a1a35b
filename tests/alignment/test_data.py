"""What the target writes: well-formed, reproducible, with states that give its law."""

import torch
from transformers import LlamaForCausalLM

from decoding.alignment.data import ANSWER, FORCED, USER, Conversations, distinct_share, write_conversations
from tests.alignment.conftest import CHAT


def test_states_give_the_law_of_a_plain_forward_pass(target: LlamaForCausalLM, conversations: Conversations):
    with torch.inference_mode():
        plain = target(conversations.tokens[:, :-1].long()).logits
        kept = target.lm_head(conversations.hidden.float()) - conversations.log_normaliser[..., None]
    assert torch.allclose(plain.log_softmax(-1), kept, atol=2e-2)  # states are kept in half precision


def test_the_same_seed_writes_the_same(target: LlamaForCausalLM, conversations: Conversations):
    settings = conversations.answer_settings.tolist()
    again, other = (
        write_conversations(target, CHAT, settings, 30, torch.Generator().manual_seed(seed)) for seed in (1, 2)
    )
    assert torch.equal(again["tokens"], conversations.tokens)
    assert not torch.equal(other["tokens"], conversations.tokens)


def test_turns_follow_the_template(conversations: Conversations):
    for tokens, writers in zip(conversations.tokens.tolist(), conversations.writers.tolist(), strict=True):
        assert tokens[:3] == CHAT.start and writers[:3] == [FORCED] * 3
        ends = [at for at in range(3, 30) if tokens[at] == CHAT.end]
        for turn, end in enumerate(ends):
            following = (CHAT.to_answer, CHAT.to_user)[turn % 2]
            assert tokens[end + 1 : end + 3] == following[: 29 - end]
            assert writers[end] in (USER, ANSWER)[turn % 2 : turn % 2 + 1]
        written = [token for token, writer in zip(tokens, writers, strict=True) if writer != FORCED]
        assert not set(written) & {2}  # every special token is written as the end of a turn


def test_greedy_answers_are_the_most_probable_tokens(target: LlamaForCausalLM, conversations: Conversations):
    greedy = conversations.select(conversations.answer_settings == 3)
    answers = (greedy.writers[:, 1:] == ANSWER) & (greedy.writers[:, :-1] == ANSWER)  # first tokens cannot end the turn
    with torch.inference_mode():
        best = target(greedy.tokens[:, :-1].long()).logits.argmax(-1)
    best = torch.where(best == 2, CHAT.end, best)
    assert answers.any() and torch.equal(best[answers], greedy.tokens[:, 1:][answers].long())


def test_distinct_share_tells_a_loop_from_prose():
    loop, prose = [7] * 40, list(range(40))
    shares = distinct_share(torch.tensor([loop, prose]), torch.full((2, 40), ANSWER))
    assert torch.allclose(shares, torch.tensor([1 / 37, 1]))
