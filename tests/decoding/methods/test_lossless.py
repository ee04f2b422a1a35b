"""Lossless methods write with exactly the target's law: every random branch walked, compared with the chain rule."""

import pytest

from decoding.enumeration import Toys, output_law
from decoding.methods import METHODS
from decoding.settings import DecodingSettings
from decoding.streams import Streams
from decoding.toy import hashed, tabled
from tests.decoding import naive

PROMPT = (1, 0)
WARPS = {
    "cold": {"temperature": 0.6, "top_k": 0, "top_p": 1},
    "hot, top-k": {"temperature": 1.7, "top_k": 2, "top_p": 1},
    "top-p": {"temperature": 1, "top_k": 0, "top_p": 0.75},
    "all three": {"temperature": 0.8, "top_k": 3, "top_p": 0.9},
}
SIZES = [  # γ, tokens to emit, vocabulary
    (1, 3, 3),
    (1, 2, 4),
    (2, 3, 3),
    (3, 2, 3),
]


def settings(warp: str, **changes) -> DecodingSettings:
    return DecodingSettings(**WARPS[warp], **changes)


def assert_lossless(target, draft, made, eos=frozenset()) -> None:
    found = output_law(METHODS["speculative"].steps, target, draft, PROMPT, made, eos)
    expected = naive.chain_rule(naive.warped(target.law_of, made), PROMPT, made.max_new_tokens, eos)
    assert found.keys() == expected.keys()
    assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("warp", WARPS)
@pytest.mark.parametrize(("length", "tokens", "vocabulary"), SIZES)
def test_speculative_law_is_the_targets(warp, length, tokens, vocabulary):
    seed = 100 * length + vocabulary
    target, draft = hashed(vocabulary, seed), hashed(vocabulary, seed + 50, sharpness=1.5)
    assert_lossless(target, draft, settings(warp, draft_length=length, max_new_tokens=tokens))


@pytest.mark.parametrize("seed", range(3))
def test_speculative_law_with_the_longest_draft(seed):
    target, draft = hashed(3, seed), hashed(3, seed + 10)
    assert_lossless(target, draft, settings("hot, top-k", draft_length=4, max_new_tokens=2))


@pytest.mark.parametrize("warp", ["cold", "top-p"])
@pytest.mark.parametrize("eos", [{0}, {0, 2}])
def test_speculative_law_with_an_end_of_text(warp, eos):
    target, draft = hashed(3, 31), hashed(3, 32)
    assert_lossless(target, draft, settings(warp, draft_length=2, max_new_tokens=3), frozenset(eos))


@pytest.mark.parametrize("draft_law", [[0.0, 0.0, 1.0], [0.5, 0.5, 0.0], [1 / 3, 1 / 3, 1 / 3]])
def test_speculative_law_when_the_supports_differ(draft_law):
    target = tabled({(): [0.4, 0.6, 0.0], (0,): [0.0, 0.0, 1.0], (2,): [0.3, 0.3, 0.4]})
    assert_lossless(target, tabled({(): draft_law}), settings("cold", draft_length=2, max_new_tokens=3))


@pytest.mark.parametrize("warp", WARPS)
def test_single_token_law_is_the_targets(warp):
    target, made = hashed(4, 5), settings(warp, max_new_tokens=3)
    found = output_law(METHODS["single_token"].steps, target, None, PROMPT, made, frozenset({3}))
    expected = naive.chain_rule(naive.warped(target.law_of, made), PROMPT, 3, {3})
    assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("warp", WARPS)
def test_a_draft_that_equals_the_target_is_always_accepted(warp):
    model = hashed(5, 3)
    for seed in range(5):
        made = settings(warp, draft_length=4, max_new_tokens=15, seed=seed)
        run = Toys(METHODS["speculative"].steps, model, model, PROMPT, made).run(Streams.seeded(seed, "equal"))
        steps = list(METHODS["speculative"].steps(run))
        assert all(verdict.accepted for step in steps for verdict in step.verdicts)
        assert [token.origin for token in steps[0].emitted] == ["accepted"] * 4 + ["bonus"]
        assert len(steps) == 3


def greedy(model, tokens: int) -> tuple[int, ...]:
    text = PROMPT
    for _ in range(tokens):
        law = list(model.law_of(text))
        text = (*text, law.index(max(law)))
    return text[len(PROMPT) :]


@pytest.mark.parametrize("length", [1, 2, 4])
@pytest.mark.parametrize("seed", range(3))
def test_at_temperature_zero_every_method_but_mtad_is_greedy(length, seed):
    target, draft = hashed(5, seed), hashed(5, seed + 10)
    made = DecodingSettings(temperature=0, draft_length=length, max_new_tokens=9)
    for method in ("single_token", "speculative"):
        assert output_law(METHODS[method].steps, target, draft, PROMPT, made) == {greedy(target, 9): 1.0}


@pytest.mark.parametrize("threshold", [0.01, 0.5, 1.0])
def test_greedy_mtad_with_one_beam_of_the_target_itself_is_greedy(threshold):
    model = hashed(5, 8)
    made = DecodingSettings(temperature=0, draft_length=3, beam_width=1, max_new_tokens=9, threshold=threshold)
    assert output_law(METHODS["mtad"].steps, model, model, PROMPT, made) == {greedy(model, 9): 1.0}
