"""Figures of a run, compared with values worked out by hand."""

import math

import pytest

from decoding.metrics import distinct, perplexity, run_metrics
from decoding.trace import Choice, Cost, Draft, Emitted, Node, Step, Verdict


def step(index: int, start: int, kept: list[bool], tokens: list[int], log_p: list[float], joules=None) -> Step:
    nodes = tuple(
        Node(
            parent=i - 1 if i else None,
            depth=i + 1,
            token=9,
            log_q=-1,
            joint_log_q=-1 - i,
            scored=True,
            log_p=-1,
            joint_log_p=-1,
            alive=True,
        )
        for i in range(len(kept))
    )
    verdicts = tuple(
        Verdict(
            depth=i + 1,
            token=9,
            log_p=-1,
            log_q=-1,
            joint_log_p=-1,
            joint_log_q=-1,
            uniform=None,
            threshold=0.5,
            passes=k,
            accepted=k,
        )
        for i, k in enumerate(kept)
    )
    return Step(
        index=index,
        start=start,
        draft=Draft(nodes=nodes, chosen=tuple(range(len(kept)))),
        verdicts=verdicts,
        emitted=tuple(Emitted(token=t, origin="sampled", log_p=p) for t, p in zip(tokens, log_p, strict=True)),
        discarded=(),
        choices=tuple(Choice(top=(), entropy_p=0, entropy_q=None) for _ in tokens),
        cost=Cost(
            target_passes=1,
            target_tokens=3,
            draft_passes=2,
            draft_tokens=4,
            target_seconds=0.25,
            draft_seconds=0.125,
            seconds=0.5,
            joules=joules,
        ),
    )


def test_hand_computed_figures():
    steps = [
        step(0, 0, [True, True, False], [1, 2, 1], [math.log(0.5), math.log(0.25), math.log(0.5)]),
        step(1, 3, [False, False, False], [2], [math.log(0.125)]),
        step(2, 4, [True], [1, 2], [math.log(0.5), math.log(0.25)]),
    ]
    metrics = run_metrics(steps, prefill_seconds=2.0)
    assert (metrics.tokens, metrics.target_passes, metrics.draft_passes) == (6, 3, 6)
    assert metrics.tokens_per_target_pass == 2
    assert (metrics.drafted, metrics.accepted, metrics.acceptance_rate) == (7, 3, 3 / 7)
    assert [(at.depth, at.drafted, at.accepted) for at in metrics.acceptance_by_depth] == [
        (1, 3, 2),
        (2, 2, 1),
        (3, 2, 0),
    ]
    assert metrics.perplexity == pytest.approx(2 ** ((1 + 2 + 1 + 3 + 1 + 2) / 6))
    # 1 2 1 2 1 2: two words, two pairs (12, 21), two triples (121, 212)
    assert (metrics.distinct_1, metrics.distinct_2, metrics.distinct_3) == (2 / 6, 2 / 5, 2 / 4)
    assert (metrics.seconds, metrics.target_seconds, metrics.draft_seconds) == (1.5, 0.75, 0.375)
    assert (metrics.prefill_seconds, metrics.tokens_per_second, metrics.joules) == (2.0, 4.0, None)


def test_joules_add_up_where_they_were_measured():
    assert (
        run_metrics([step(0, 0, [], [1], [-1.0], joules=1.5), step(1, 1, [], [1], [-1.0], joules=2.0)], 0.0).joules
        == 3.5
    )


def test_figures_of_nothing_are_none():
    metrics = run_metrics([], prefill_seconds=1.0)
    nothing = (
        metrics.tokens_per_target_pass,
        metrics.acceptance_rate,
        metrics.perplexity,
        metrics.distinct_1,
        metrics.tokens_per_second,
    )
    assert nothing == (None,) * 5
    assert metrics.acceptance_by_depth == ()


def test_perplexity_of_a_uniform_law_is_its_size():
    assert perplexity([math.log(1 / 50)] * 7) == pytest.approx(50)


def test_distinct_of_a_text_shorter_than_n_is_none():
    assert distinct([1, 2], 3) is None
    assert distinct([1, 1, 1, 1], 2) == pytest.approx(1 / 3)


def test_perplexity_of_a_token_that_was_impossible_is_infinite_or_said_so():
    assert perplexity([-math.inf, -1.0]) == math.inf
