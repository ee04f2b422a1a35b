"""Typical acceptance against its rule written down again, on toy pairs."""

import math

import pytest

from decoding.methods import METHODS
from decoding.methods.acceptance import typical_bar
from decoding.run import Run
from decoding.settings import DecodingSettings
from decoding.streams import Streams
from decoding.toy import hashed, tabled
from tests.decoding import naive

PROMPT = (1, 0)


def steps_of(target, draft, made: DecodingSettings, eos=frozenset()) -> list:
    run = Run(target.open(), draft.open(), PROMPT, made, Streams.seeded(made.seed, "typical"), eos)
    return list(METHODS["typical"].steps(run))


@pytest.mark.parametrize(
    ("law", "threshold", "bar"),
    [
        ([1.0], 0.25, 0.25),  # no entropy: √τ = 0.5, so τ decides
        ([0.25] * 4, 0.25, 0.125),  # exp(−H) = 1/4, and √τ/4 = 1/8
        ([0.25] * 4, 0.04, 0.04),  # √τ/4 = 0.05 exceeds τ
        ([0.5, 0.5], 1.0, 0.5),
    ],
)
def test_the_bar_by_hand(law, threshold, bar):
    entropy = -sum(p * math.log(p) for p in law)
    assert typical_bar(entropy, threshold) == pytest.approx(bar)


@pytest.mark.parametrize("threshold", [0.05, 0.3, 0.8])
@pytest.mark.parametrize("temperature", [0.0, 0.7, 1.5])
def test_every_step_follows_the_rule(threshold, temperature):
    kept_lengths = set()
    for seed in range(6):
        target, draft = hashed(5, seed), hashed(5, seed + 40)
        made = DecodingSettings(
            temperature=temperature, top_k=4, top_p=0.95, threshold=threshold, max_new_tokens=14, seed=seed
        )
        law_of = naive.warped(target.law_of, made)
        text = list(PROMPT)
        for step in steps_of(target, draft, made):
            kept = 0
            for i, verdict in enumerate(step.verdicts):
                law = law_of((*text, *(other.token for other in step.verdicts[:i])))
                entropy = -sum(p * math.log(p) for p in law if p)
                bar = min(threshold, math.sqrt(threshold) * math.exp(-entropy))
                assert verdict.threshold == pytest.approx(bar, rel=1e-6)
                assert verdict.passes == (law[verdict.token] > bar)
                kept += kept == i and verdict.passes
            assert [verdict.accepted for verdict in step.verdicts] == [i < kept for i in range(len(step.verdicts))]
            origins = ["accepted"] * kept + ["bonus" if kept == len(step.verdicts) else "sampled"]
            assert [token.origin for token in step.emitted] == origins[: len(step.emitted)]
            text += [token.token for token in step.emitted]
            kept_lengths.add(kept)
    assert len(kept_lengths) > 1


def test_greedy_typical_acceptance_is_greedy_decoding():
    target, draft = hashed(6, 3), hashed(6, 4)
    made = DecodingSettings(temperature=0, max_new_tokens=12)
    text = list(PROMPT)
    for _ in range(12):
        law = target.law_of(tuple(text))
        text.append(max(range(6), key=law.__getitem__))
    emitted = [token.token for step in steps_of(target, draft, made) for token in step.emitted]
    assert emitted == text[len(PROMPT) :]


def test_it_keeps_what_a_bad_draft_proposes_where_speculative_decoding_would_not():
    """The draft always proposes 1, which the target gives 0.4: with τ = 0.3 it is kept every time."""
    target, draft = tabled({(): [0.6, 0.4]}), tabled({(): [0.0, 1.0]})
    made = DecodingSettings(temperature=1, top_k=0, top_p=1, threshold=0.3, draft_length=2, max_new_tokens=30)
    for step in steps_of(target, draft, made)[:-1]:
        assert [verdict.accepted for verdict in step.verdicts] == [True, True]


def test_an_end_of_text_that_is_kept_ends_it():
    target, draft = tabled({(): [0.5, 0.5]}), tabled({(): [0.0, 1.0]})
    made = DecodingSettings(temperature=1, top_k=0, top_p=1, threshold=0.3, draft_length=3)
    [step] = steps_of(target, draft, made, frozenset({1}))
    assert [(token.token, token.origin) for token in step.emitted] == [(1, "accepted")]
