"""A run that begins with given tokens: as if it had written them itself, at no cost."""

import math

import pytest
import torch

from decoding.decode import Decoding
from decoding.methods import METHODS
from decoding.prompting import InvalidPrompt
from decoding.replay import replay
from decoding.settings import DecodingSettings
from decoding.trace import Trace
from tests.decoding.tiny import PROMPT, VOCABULARY, tiny_pair

GIVEN = (7, 3, 3, 41)


@pytest.fixture(scope="module")
def pair():
    return tiny_pair("Llama")


def run(pair, method: str, forced=(), **settings) -> Trace:
    decoding = Decoding(method, pair, PROMPT, DecodingSettings(**{"max_new_tokens": 16} | settings), forced=forced)
    for _ in decoding:
        pass
    return decoding.trace()


@pytest.mark.parametrize("method", METHODS)
def test_given_tokens_come_first_with_the_targets_law(pair, method):
    trace = run(pair, method, GIVEN)
    first = trace.steps[0]
    assert trace.result.token_ids[: len(GIVEN)] == trace.forced == GIVEN
    assert trace.steps[1].emitted
    text = [*trace.prompt.token_ids, *GIVEN]
    with torch.inference_mode():
        laws = pair.target.model(torch.tensor([text])).logits[0, :, :VOCABULARY].log_softmax(-1)
    expected = [float(laws[i - 1, text[i]]) for i in range(len(text) - len(GIVEN), len(text))]
    assert [token.log_p for token in first.emitted] == pytest.approx(expected, abs=1e-4)
    for token, choice in zip(first.emitted, first.choices, strict=True):
        taken = next(candidate for candidate in choice.top if candidate.token == token.token)
        assert math.log(taken.p) == pytest.approx(token.log_p, abs=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_a_greedy_run_goes_on_from_its_own_beginning_as_before(pair, method):
    greedy = run(pair, "single_token", temperature=0)
    beginning = greedy.result.token_ids[:5]
    if METHODS[method].lossless:
        assert run(pair, method, beginning, temperature=0).result.token_ids == greedy.result.token_ids


@pytest.mark.parametrize("method", METHODS)
def test_given_tokens_are_not_counted_as_decoded(pair, method):
    trace = run(pair, method, GIVEN)
    metrics, decoded = trace.result.metrics, trace.steps[1:]
    passes = sum(step.cost.target_passes for step in decoded)
    assert (trace.steps[0].cost.target_passes, trace.steps[0].cost.draft_passes) == (0, 0)
    assert metrics.tokens_per_target_pass == pytest.approx((len(trace.result.token_ids) - len(GIVEN)) / passes)
    log_ps = [token.log_p for step in trace.steps for token in step.emitted]
    assert metrics.perplexity == pytest.approx(math.exp(-sum(log_ps) / len(log_ps)))


@pytest.mark.parametrize("method", METHODS)
def test_a_branch_replays(pair, method):
    trace = Trace.model_validate_json(run(pair, method, GIVEN).model_dump_json())
    assert list(replay(trace, pair)) == [None] * len(trace.steps)


@pytest.mark.parametrize(
    ("tokens", "words"), [((1, VOCABULARY), "vocabulary has"), ((-1,), "vocabulary has"), ((1,) * 16, "leave nothing")]
)
def test_tokens_that_cannot_be_given_are_refused_in_words(pair, tokens, words):
    with pytest.raises(InvalidPrompt, match=words):
        run(pair, "mtad", tokens)
