"""Padded vocabularies are cut to what is shared; different tokenizers are refused in words."""

import pytest
import torch

from decoding.decode import decode
from decoding.pair import ModelPair, VocabularyMismatch
from decoding.settings import DecodingSettings
from tests.audit.audit import audit
from tests.decoding.tiny import PROMPT, VOCABULARY, as_language_model, tiny_model


def padded_model(seed: int, size: int):
    """A model whose head is longer than its tokenizer, and whose padding is the likeliest of all."""
    model = tiny_model("Llama", seed, vocab_size=size, tie_word_embeddings=False)
    model.lm_head = torch.nn.Linear(32, size, bias=True)
    torch.nn.init.normal_(model.lm_head.weight, std=0.3)
    torch.nn.init.zeros_(model.lm_head.bias)
    model.lm_head.bias.data[VOCABULARY:] = 50.0
    return model.eval()


@pytest.mark.parametrize("method", ["single_token", "speculative", "mtad"])
@pytest.mark.parametrize(("of_target", "of_draft"), [(64, 60), (60, 72), (64, 72)])
def test_padded_ids_never_occur_and_laws_sum_to_one(method, of_target, of_draft):
    target, draft = (as_language_model(padded_model(i, size)) for i, size in enumerate((of_target, of_draft)))
    pair = ModelPair.of(target, draft)
    assert pair.target.vocabulary == pair.draft.vocabulary == VOCABULARY
    law = pair.target.open().feed([1, 2, 3])
    assert law.shape == (1, VOCABULARY)
    assert law.exp().sum() == pytest.approx(1)
    trace = decode(method, pair, PROMPT, DecodingSettings(max_new_tokens=20, top_k=0, top_p=1))
    assert max(trace.tokens) < VOCABULARY
    assert trace.target.vocabulary == VOCABULARY
    ledger = audit(trace, pair.target.model, pair.draft.model, pair.target.eos_ids)
    assert not ledger.failures


def refusal(target, draft) -> str:
    with pytest.raises(VocabularyMismatch) as refused:
        ModelPair.of(target, draft)
    return str(refused.value)


def test_tokenizers_of_different_size_are_refused_with_both_sizes():
    message = refusal(
        as_language_model(tiny_model("Llama"), "big"), as_language_model(tiny_model("Llama"), "small", 50)
    )
    assert "'small' cannot draft for 'big'" in message
    assert "60 tokens, the draft 50, and 50 of them have the same id" in message
    assert "id 50: 'w50' for the target, None for the draft" in message


def renamed(**words: int):
    from dataclasses import replace

    from tests.decoding.tiny import tiny_tokenizer

    return replace(as_language_model(tiny_model("Llama"), "renamed"), tokenizer=tiny_tokenizer(**words))


def test_tokenizers_of_the_same_size_are_refused_with_the_first_difference():
    message = refusal(as_language_model(tiny_model("Llama")), renamed(other=7))
    assert "59 of them have the same id" in message
    assert "id 7: 'w7' for the target, 'other' for the draft" in message


def test_the_same_tokens_split_otherwise_are_refused():
    from tokenizers import pre_tokenizers

    draft = renamed()
    draft.tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.CharDelimiterSplit("x")
    target = as_language_model(tiny_model("Llama"))
    assert target.tokenizer.get_vocab() == draft.tokenizer.get_vocab()
    assert "split text differently" in refusal(target, draft)


def test_the_same_tokenizer_is_no_difference():
    target, draft = as_language_model(tiny_model("Llama")), as_language_model(tiny_model("GPT-2"))
    assert ModelPair.of(target, draft).context_length == 256
    assert ModelPair.of(target, None).draft is None
