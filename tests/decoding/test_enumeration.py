"""The enumerator itself: it visits every branch once, its weights add up, and it notices a rule that is broken."""

import sys

import numpy as np
import pytest

from decoding.enumeration import Decisions, Toys, output_law, target_law, told_streams
from decoding.methods import METHODS
from decoding.settings import DecodingSettings
from decoding.toy import hashed, tabled
from tests.decoding import naive

TARGET, DRAFT, PROMPT = hashed(3, seed=11), hashed(3, seed=12), (0, 2)


def settings(**changes) -> DecodingSettings:
    return DecodingSettings(
        **({"top_k": 0, "top_p": 1, "draft_length": 2, "beam_width": 2, "max_new_tokens": 2} | changes)
    )


def law_by_whole_paths(method: str, made: DecodingSettings, eos=frozenset()) -> dict:
    """Every path from the first decision to the last, nothing merged."""
    toys = Toys(METHODS[method].steps, TARGET, DRAFT, PROMPT, made, eos)
    law, path = {}, Decisions()
    while path:
        run = toys.run(told_streams(path))
        for _ in toys.steps(run):
            pass
        text = tuple(run.emitted)
        law[text] = law.get(text, 0.0) + path.probability()
        path = path.next()
    return law


@pytest.mark.parametrize(
    ("method", "changes"),
    [
        ("single_token", {"max_new_tokens": 4}),
        ("speculative", {"draft_length": 1, "max_new_tokens": 3, "top_k": 2}),
        ("speculative", {"max_new_tokens": 2, "top_p": 0.8}),
        ("mtad", {"draft_length": 1, "top_k": 2, "threshold": 0.9}),
    ],
)
def test_merging_equal_texts_changes_nothing(method, changes):
    made = settings(**changes)
    merged = output_law(METHODS[method].steps, TARGET, DRAFT, PROMPT, made, frozenset({1}))
    whole = law_by_whole_paths(method, made, frozenset({1}))
    assert merged.keys() == whole.keys()
    assert merged == pytest.approx(whole, abs=1e-12)


def test_the_target_law_is_the_chain_rule():
    made = settings(temperature=0.6, top_k=2, max_new_tokens=4)
    expected = naive.chain_rule(naive.warped(TARGET.law_of, made), PROMPT, 4, {0})
    assert target_law(TARGET, PROMPT, made, frozenset({0})) == pytest.approx(expected, abs=1e-13)


def test_a_law_worked_out_by_hand():
    """One token of speculative decoding: accepted with probability Σ min(p, q), else from the residual; p either way."""
    target, draft = tabled({(): [0.7, 0.2, 0.1]}), tabled({(): [0.1, 0.6, 0.3]})
    law = output_law(METHODS["speculative"].steps, target, draft, (0,), settings(draft_length=1, max_new_tokens=1))
    assert law == pytest.approx({(0,): 0.7, (1,): 0.2, (2,): 0.1}, abs=1e-15)


def test_a_broken_rule_is_noticed(monkeypatch):
    monkeypatch.setattr(sys.modules["decoding.methods.speculative"], "residual", lambda log_p, log_q: log_p)
    made = settings(draft_length=1)
    found = output_law(METHODS["speculative"].steps, TARGET, DRAFT, PROMPT, made)
    exact = target_law(TARGET, PROMPT, made)
    assert sum(found.values()) == pytest.approx(1)
    assert max(abs(found[text] - exact[text]) for text in exact) > 0.01


def test_decisions_are_walked_in_order_and_impossible_ones_are_skipped():
    visited, path = [], Decisions()
    while path:
        first = path.decide(np.array([0.0, 1.0, 0.0, 3.0]))
        second = path.decide(np.array([1.0, 1.0])) if first == 3 else None
        visited.append((first, second, path.probability()))
        path = path.next()
    assert visited == [(1, None, 0.25), (3, 0, 0.375), (3, 1, 0.375)]
