"""MTAD against a naive transcription of its rules: beams, joints, η and the next token's law, on many toy pairs."""

import math
from dataclasses import dataclass, field

import numpy as np
import pytest

from decoding.enumeration import Toys, output_law
from decoding.methods import METHODS
from decoding.settings import DecodingSettings
from decoding.streams import Stream, Streams
from decoding.toy import hashed, tabled
from decoding.trace import Step
from tests.decoding import naive

PROMPT = (1, 0)
mtad = METHODS["mtad"].steps


@dataclass
class NotingStream(Stream):
    """Inverts a known sequence of uniforms, and notes the laws it was asked to draw from."""

    seed: int
    asked: list[list[float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._numbers = np.random.default_rng(self.seed)

    def pick(self, weights) -> int:
        law = naive.normalised([float(weight) for weight in weights])
        self.asked.append([p for p in law if p > 0])
        u, mass = self._numbers.random(), 0.0
        for index, p in enumerate(law):
            mass += p
            if u < mass:
                return index
        raise AssertionError("no mass left")

    def uniform(self, split: float) -> float:
        raise AssertionError("MTAD accepts without drawing")


def beams_of(step: Step) -> dict[tuple[int, ...], float]:
    """The beams that reached the end, and their joint log Q."""
    paths = []
    for node in step.draft.nodes:
        paths.append((*(() if node.parent is None else paths[node.parent]), node.token))
    inner = {node.parent for node in step.draft.nodes if node.alive}
    return {paths[i]: node.joint_log_q for i, node in enumerate(step.draft.nodes) if node.alive and i not in inner}


def logs(probabilities) -> list[float]:
    return [math.log(p) if p else -math.inf for p in probabilities]


def assert_follows_the_rules(target, draft, made: DecodingSettings, eos=frozenset(), seed=0) -> list[Step]:
    ours, theirs = NotingStream(seed), NotingStream(seed)
    next_tokens = NotingStream(seed + 1)
    run = Toys(mtad, target, draft, PROMPT, made, eos).run(Streams(ours, ours, next_tokens))
    p, q = (naive.warped(model.law_of, made) for model in (target, draft))
    rule_p, rule_q = (p, q) if made.temperature else (target.law_of, draft.law_of)
    searching = made.draft_search == "search" or made.temperature == 0
    text, steps = PROMPT, []
    for step in mtad(run):
        steps.append(step)
        draw = naive.largest if searching else lambda w, n: naive.draw_without_replacement(w, n, theirs.pick)
        beams = naive.draft_beams(rule_q, text, made.draft_length, made.beam_width, eos, draw)
        assert beams_of(step) == pytest.approx({path: math.log(joint) for path, joint, _ in beams}, abs=1e-12)
        for asked, expected in zip(ours.asked, theirs.asked, strict=True):
            assert asked == pytest.approx(expected, abs=1e-12)

        block = max(beams, key=lambda beam: beam[1])[0]
        assert tuple(verdict.token for verdict in step.verdicts) == block
        joint_p, joint_q, kept = naive.mtad_verdict(rule_p, rule_q, text, block, made.threshold)
        assert [verdict.joint_log_p for verdict in step.verdicts] == pytest.approx(logs(joint_p), abs=1e-12)
        assert [verdict.joint_log_q for verdict in step.verdicts] == pytest.approx(logs(joint_q), abs=1e-12)
        assert [verdict.accepted for verdict in step.verdicts] == [i < kept for i in range(len(block))]

        emitted = (*(token.token for token in step.emitted), *step.discarded)
        assert emitted[:kept] == block[:kept]
        if kept and block[kept - 1] in eos:
            assert len(emitted) == kept
        else:
            law = p((*text, *block[:kept]))
            assert len(emitted) == kept + 1
            assert law[emitted[kept]] > 0
            assert next_tokens.asked[-1] == pytest.approx([w for w in law if w > 0], abs=1e-12)
            origins = ["accepted"] * kept + ["bonus" if kept == len(block) else "sampled"]
            assert [token.origin for token in step.emitted] == origins[: len(step.emitted)]
        text = (*text, *(token.token for token in step.emitted))
    assert run.finish_reason is not None
    return steps


def varied(seed: int) -> tuple[DecodingSettings, int, frozenset[int]]:
    """Settings, vocabulary and ends of text that vary with the seed."""
    choose = np.random.default_rng(seed)
    made = DecodingSettings(
        temperature=float(choose.choice([0.6, 1.0, 1.6])),
        top_k=int(choose.choice([0, 2, 3])),
        top_p=float(choose.choice([0.8, 1.0])),
        draft_length=int(choose.integers(1, 5)),
        beam_width=int(choose.integers(1, 6)),
        threshold=float(choose.choice([0.05, 0.3, 0.7, 1.0])),
        max_new_tokens=10,
    )
    return made, int(choose.integers(3, 6)), frozenset({0} if choose.random() < 0.5 else ())


@pytest.mark.parametrize("search", ["sampling", "search"])
@pytest.mark.parametrize("seed", range(14))
def test_mtad_follows_the_rules(seed, search):
    made, vocabulary, eos = varied(seed)
    made = made.model_copy(update={"draft_search": search})
    assert_follows_the_rules(hashed(vocabulary, seed), hashed(vocabulary, seed + 100), made, eos, seed)


@pytest.mark.parametrize("seed", range(8))
def test_at_temperature_zero_the_joint_is_unwarped_and_the_next_token_greedy(seed):
    made, vocabulary, eos = varied(seed)
    made = made.model_copy(update={"temperature": 0.0})
    target, draft = hashed(vocabulary, seed), hashed(vocabulary, seed + 100)
    steps = assert_follows_the_rules(target, draft, made, eos, seed)
    text = PROMPT
    for step in steps:
        for token in step.emitted:
            if token.origin != "accepted":
                law = list(target.law_of(text))
                assert token.token == law.index(max(law))
            text = (*text, token.token)


@pytest.mark.parametrize("search", ["sampling", "search"])
@pytest.mark.parametrize("length", [1, 3])
@pytest.mark.parametrize("width", [1, 4, 16])
def test_one_beam_one_token_and_more_beams_than_there_are_tokens(length, width, search):
    made = DecodingSettings(top_k=2, draft_length=length, beam_width=width, draft_search=search, max_new_tokens=8)
    steps = assert_follows_the_rules(hashed(4, 1), hashed(4, 2), made)
    assert max(len(beams_of(step)) for step in steps) == min(width, 2**length)


def test_a_finished_beam_stays_in_the_pool_and_may_win():
    draft = tabled({(): [0.8, 0.1, 0.1], (1,): [0.4, 0.3, 0.3]})  # the end of text, token 0, is by far the likeliest
    made = DecodingSettings(
        top_k=0, top_p=1, draft_search="search", draft_length=3, beam_width=3, max_new_tokens=8, threshold=0.01
    )
    steps = assert_follows_the_rules(draft, draft, made, eos=frozenset({0}))
    assert [token.token for token in steps[0].emitted] == [0]
    assert beams_of(steps[0]).keys() >= {(0,)}
    assert max(node.depth for node in steps[0].draft.nodes) > 1


def test_drafting_stops_when_every_beam_has_ended():
    certain = tabled({(): [1.0, 0.0, 0.0]})
    made = DecodingSettings(draft_length=4, beam_width=3, max_new_tokens=8)
    (step,) = assert_follows_the_rules(certain, certain, made, eos=frozenset({0}))
    assert len(step.draft.nodes) == 1
    assert step.cost.draft_passes == 1


def test_a_longer_prefix_rescues_a_shorter_one():
    """The golden case: ratios .8333, .0333, .05, .075 with τ = .05, and all four tokens are kept."""

    def by_length(first: list[float]):
        laws = {(): [1 / 3] * 3}
        for length, p in enumerate(first):
            laws[(*PROMPT, *[2] * length)] = [(1 - p) / 2, (1 - p) / 2, p]
        return tabled(laws)

    target, draft = by_length([0.5, 0.02, 0.9, 0.9]), by_length([0.6, 0.5, 0.6, 0.6])
    made = DecodingSettings(
        top_k=0, top_p=1, draft_search="search", draft_length=4, beam_width=1, threshold=0.05, max_new_tokens=5
    )
    (step,) = assert_follows_the_rules(target, draft, made)
    assert [verdict.accepted for verdict in step.verdicts] == [True] * 4
    assert not step.verdicts[1].passes
    ratios = [math.exp(verdict.joint_log_p - verdict.joint_log_q) for verdict in step.verdicts]
    assert ratios == pytest.approx([0.8333, 0.0333, 0.05, 0.075], abs=5e-5)
    assert [token.origin for token in step.emitted] == ["accepted"] * 4 + ["bonus"]


def composed(p, q, made: DecodingSettings, eos) -> dict[tuple[int, ...], float]:
    """The naive law of whole texts: steps follow each other until the text ends or the limit cuts it."""
    law, open_texts = {}, {(): 1.0}
    while open_texts:
        text, weight = open_texts.popitem()
        for emitted, probability in naive.mtad_step_law(p, q, (*PROMPT, *text), made, eos).items():
            longer = (*text, *emitted)[: made.max_new_tokens]
            ended = longer[-1] in eos or len(longer) == made.max_new_tokens
            into = law if ended else open_texts
            into[longer] = into.get(longer, 0.0) + weight * probability
    return law


@pytest.mark.parametrize(
    ("changes", "eos"),
    [
        ({"draft_length": 1, "beam_width": 2, "max_new_tokens": 3, "tree_verification": True}, ()),
        ({"draft_length": 2, "beam_width": 2, "max_new_tokens": 3, "top_k": 2, "tree_verification": True}, (0,)),
        ({"draft_length": 2, "beam_width": 3, "max_new_tokens": 2, "top_k": 2, "tree_verification": True}, ()),
        ({"draft_length": 1, "beam_width": 2, "max_new_tokens": 3}, ()),
        ({"draft_length": 1, "beam_width": 3, "max_new_tokens": 2, "temperature": 0.5}, (1,)),
        ({"draft_length": 2, "beam_width": 2, "max_new_tokens": 3, "top_k": 2}, ()),
        ({"draft_length": 2, "beam_width": 2, "max_new_tokens": 2, "top_k": 2, "threshold": 0.9}, (0,)),
        ({"draft_length": 3, "beam_width": 1, "max_new_tokens": 2, "top_p": 0.8}, ()),
    ],
)
def test_the_output_law_of_mtad_is_that_of_the_rules(changes, eos):
    made = DecodingSettings(**({"top_k": 0, "top_p": 1} | changes))
    target, draft = hashed(3, 61), hashed(3, 62)
    p, q = (naive.warped(model.law_of, made) for model in (target, draft))
    found = output_law(mtad, target, draft, PROMPT, made, frozenset(eos))
    expected = composed(p, q, made, frozenset(eos))
    assert found == pytest.approx(expected, abs=1e-12)


def test_mtad_is_not_lossless():
    made = DecodingSettings(top_k=0, top_p=1, draft_length=1, beam_width=2, max_new_tokens=2, threshold=0.3)
    target, draft = hashed(3, 61), hashed(3, 62)
    found = output_law(mtad, target, draft, PROMPT, made)
    exact = naive.chain_rule(target.law_of, PROMPT, 2)
    assert max(abs(found.get(text, 0.0) - exact[text]) for text in exact) > 0.01
