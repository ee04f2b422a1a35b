"""The closed forms against the enumerator, which runs the methods themselves, and against laws worked out by hand."""

import math

import numpy as np
import pytest

from decoding.enumeration import output_law
from decoding.exact_law import (
    Chain,
    InvalidTable,
    TooManyDraws,
    exact_joint_step,
    kl_divergence,
    most_probable_text,
    mtad_step,
    speculative_step,
    target_law,
    text_law,
    total_variation,
    typical_step,
)
from decoding.methods import METHODS
from decoding.settings import DecodingSettings
from decoding.toy import ToyModel

PLAIN = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "search_budget": 400}


def random_chain(symbols: int, seed: int) -> Chain:
    return Chain.of(np.random.default_rng(seed).dirichlet(np.ones(symbols), symbols + 1).tolist())


def as_toy(chain: Chain) -> ToyModel:
    """The prompt is one token beyond the symbols, which no law ever draws."""
    return ToyModel(lambda text: (*chain.after(text[1:]), 0.0))


def enumerated(method: str, p: Chain, q: Chain, **settings) -> dict[tuple[int, ...], float]:
    made = DecodingSettings.model_validate(PLAIN | settings)
    return output_law(METHODS[method].steps, as_toy(p), as_toy(q), (p.symbols,), made)


def same(law, other) -> bool:
    return total_variation(law, other) < 1e-9


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("draft_length", [1, 2, 3])
def test_speculative_decoding_is_the_target_whatever_the_draft(seed, draft_length):
    p, q = random_chain(3, seed), random_chain(3, seed + 50)
    law = text_law(speculative_step(p, q, draft_length), 3)
    assert law == pytest.approx(target_law(p, 3), abs=1e-12)
    assert sum(law.values()) == pytest.approx(1, abs=1e-12)


def test_speculative_decoding_equals_the_enumerator():
    p, q = random_chain(2, 1), random_chain(2, 2)
    assert same(
        text_law(speculative_step(p, q, 2), 3), enumerated("speculative", p, q, draft_length=2, max_new_tokens=3)
    )


@pytest.mark.parametrize(
    ("symbols", "draft_length", "width", "length", "threshold"),
    [(3, 1, 2, 2, 0.7), (2, 2, 2, 2, 0.5), (2, 2, 1, 3, 0.9), (3, 2, 1, 2, 0.6)],
)
@pytest.mark.parametrize("search", ["sampling", "search"])
def test_mtad_equals_the_enumerator(symbols, draft_length, width, length, threshold, search):
    p, q = random_chain(symbols, 7), random_chain(symbols, 8)
    step = mtad_step(p, q, draft_length, width, threshold, sampled=search == "sampling")
    found = enumerated(
        "mtad",
        p,
        q,
        draft_length=draft_length,
        beam_width=width,
        threshold=threshold,
        max_new_tokens=length,
        draft_search=search,
    )
    assert same(text_law(step, length), found)
    if search == "sampling":
        assert total_variation(found, target_law(p, length)) > 1e-3  # it is not lossless


def test_mtad_with_equal_beams_equals_the_enumerator():
    p = random_chain(2, 3)
    q = Chain.of([[0.5, 0.5], [0.5, 0.5], [0.5, 0.5]])
    found = enumerated("mtad", p, q, draft_length=2, beam_width=2, threshold=0.9, max_new_tokens=2)
    assert same(text_law(mtad_step(p, q, 2, 2, 0.9), 2), found)


@pytest.mark.parametrize("count", [1, 3, 64])
def test_exact_joint_decoding_equals_the_enumerator(count):
    p = random_chain(3, 5)
    found = enumerated("mtjd", p, p, draft_length=2, best_blocks=count, max_new_tokens=3)
    assert same(text_law(exact_joint_step(p, 2, count), 3), found)


def test_typical_acceptance_by_hand():
    """q drafts 0 or 1 evenly; the target's 0.9 is accepted, its 0.1 is not and the target asked anew: 0.5 + 0.5 · 0.9.

    The law's entropy is 0.325, so √0.3 · exp(−H) = 0.396 and the bar is 0.3.
    """
    p, q = Chain.of([[0.9, 0.1]] * 3), Chain.of([[0.5, 0.5]] * 3)
    law = text_law(typical_step(p, q, 1, threshold=0.3), 1)
    assert law == pytest.approx({(0,): 0.95, (1,): 0.05})
    assert total_variation(law, target_law(p, 1)) == pytest.approx(0.05)
    assert kl_divergence(law, target_law(p, 1)) == pytest.approx(
        0.95 * math.log(0.95 / 0.9) + 0.05 * math.log(0.05 / 0.1)
    )


@pytest.mark.parametrize("threshold", [0.1, 0.5])
def test_typical_acceptance_equals_the_enumerator(threshold):
    p, q = random_chain(3, 3), random_chain(3, 4)
    found = enumerated("typical", p, q, draft_length=2, threshold=threshold, max_new_tokens=3)
    assert same(text_law(typical_step(p, q, 2, threshold), 3), found)


def test_the_joint_arg_max_need_not_begin_with_the_likeliest_token():
    trap = Chain.of([[0.6, 0.4], [0.5, 0.5], [0.9, 0.1]])
    assert most_probable_text(trap, 2) == (1, 0)


def test_divergences_of_laws_with_different_supports():
    one, other = {(0,): 1.0}, {(0,): 0.5, (1,): 0.5}
    assert total_variation(one, other) == 0.5
    assert kl_divergence(one, other) == pytest.approx(math.log(2))
    assert kl_divergence(other, one) == math.inf


@pytest.mark.parametrize(
    ("rows", "complaint"),
    [
        ([[0.5, 0.5], [0.5, 0.4], [1, 0]], "after symbol 1 sums to 0.9"),
        ([[1.5, -0.5], [1, 0], [1, 0]], "at the start holds 1.5"),
        ([[math.nan, 0.5], [1, 0], [1, 0]], "no number"),
        ([[1, 0], [1, 0]], "n \\+ 1 rows"),
        ([], "n \\+ 1 rows"),
    ],
)
def test_tables_that_are_no_laws_are_refused(rows, complaint):
    with pytest.raises(InvalidTable, match=complaint):
        Chain.of(rows)


def test_too_many_draws_are_refused():
    p = random_chain(5, 0)
    with pytest.raises(TooManyDraws, match="fewer beams"):
        text_law(mtad_step(p, p, 4, 4, 0.5), 4)
