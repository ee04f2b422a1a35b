"""Exact MTJD: its blocks and their law are those of plain enumeration, on toys; on a model, those it says it scored."""

import math

import pytest

from decoding.decode import decode
from decoding.enumeration import Toys, output_law
from decoding.methods import METHODS
from decoding.settings import DecodingSettings
from decoding.streams import Streams
from decoding.toy import hashed
from tests.decoding import naive
from tests.decoding.tiny import CONFIGS, PROMPT, tiny_pair

TEXT = (1, 0)
mtjd = METHODS["mtjd"].steps


def composed(p, made: DecodingSettings, eos, count: int) -> dict[tuple[int, ...], float]:
    """Blocks follow each other until the text ends or the limit cuts it."""
    law, open_texts = {}, {(): 1.0}
    while open_texts:
        text, weight = open_texts.popitem()
        for block, probability in naive.top_blocks(p, (*TEXT, *text), made.draft_length, eos, count).items():
            longer = (*text, *block)[: made.max_new_tokens]
            into = law if longer[-1] in eos or len(longer) == made.max_new_tokens else open_texts
            into[longer] = into.get(longer, 0.0) + weight * probability
    return law


@pytest.mark.parametrize(
    ("changes", "eos"),
    [
        ({"draft_length": 2, "best_blocks": 3}, ()),
        ({"draft_length": 3, "best_blocks": 5, "temperature": 0.6}, (0,)),
        ({"draft_length": 2, "best_blocks": 64, "top_k": 2}, (1,)),
        ({"draft_length": 3, "best_blocks": 1, "max_new_tokens": 5}, ()),
        ({"draft_length": 1, "best_blocks": 2, "top_p": 0.7}, (2,)),
    ],
)
def test_the_output_law_is_joint_top_m_sampling(changes, eos):
    made = DecodingSettings(**({"top_k": 0, "top_p": 1, "max_new_tokens": 4, "search_budget": 400} | changes))
    model = hashed(3, 71)
    found = output_law(mtjd, model, None, TEXT, made, frozenset(eos))
    expected = composed(naive.warped(model.law_of, made), made, frozenset(eos), made.best_blocks)
    assert found == pytest.approx(expected, abs=1e-12)


def test_with_every_block_among_the_best_it_is_lossless():
    made = DecodingSettings(
        top_k=0, top_p=1, max_new_tokens=3, draft_length=3, best_blocks=64, search_budget=400, temperature=1.3
    )
    model = hashed(3, 5)
    expected = naive.chain_rule(naive.warped(model.law_of, made), TEXT, 3)
    assert output_law(mtjd, model, None, TEXT, made) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("length", [1, 2, 4])
def test_at_temperature_zero_it_writes_the_most_probable_block_of_the_unwarped_target(length):
    for seed in range(5):
        model = hashed(4, seed)
        made = DecodingSettings(temperature=0, draft_length=length, max_new_tokens=8, search_budget=400)
        text = ()
        while len(text) < 8:
            (block,) = naive.top_blocks(model.law_of, (*TEXT, *text), length, (), 1)
            text = (*text, *block)[:8]
        assert output_law(mtjd, model, None, TEXT, made) == {text: 1.0}


def test_a_step_holds_all_that_was_searched():
    made = DecodingSettings(max_new_tokens=12, draft_length=3, best_blocks=4, top_k=0, top_p=1, search_budget=400)
    run = Toys(mtjd, hashed(4, 3), None, TEXT, made).run(Streams.seeded(0, "mtjd"))
    text = TEXT
    for step in mtjd(run):
        paths = []
        for node in step.draft.nodes:
            paths.append((*(() if node.parent is None else paths[node.parent]), node.token))
        found = [paths[end] for end in step.search.blocks]
        assert found == list(naive.top_blocks(hashed(4, 3).law_of, text, 3, (), 4))
        assert (step.search.proven, step.search.evaluations) == (4, step.cost.target_tokens)
        assert step.cost.draft_passes == 0
        assert not step.verdicts
        block = tuple(step.draft.nodes[i].token for i in step.draft.chosen)
        assert block in found
        assert block == (*(token.token for token in step.emitted), *step.discarded)
        assert {token.origin for token in step.emitted} == {"sampled"}
        for node, path in zip(step.draft.nodes, paths, strict=True):
            assert math.exp(node.joint_log_p) == pytest.approx(naive.joint(hashed(4, 3).law_of, text, path), abs=1e-12)
        text = (*text, *block)


def test_a_small_budget_still_writes_and_says_how_good_it_is_at_worst():
    made = DecodingSettings(
        max_new_tokens=16, draft_length=4, top_k=0, top_p=1, temperature=2, search_budget=16, best_blocks=20
    )
    trace = decode("mtjd", tiny_pair("Llama"), PROMPT, made)
    for step in trace.steps:
        ends = [step.draft.nodes[end].joint_log_p for end in step.search.blocks]
        assert ends == sorted(ends, reverse=True)
        assert step.search.evaluations <= 16
        assert step.search.proven < len(ends)
        assert all(end <= step.search.bound + 1e-9 for end in ends[step.search.proven :])


@pytest.mark.parametrize("architecture", CONFIGS)
def test_a_text_cut_by_the_limit_begins_the_text_without_it(architecture):
    pair = tiny_pair(architecture)
    short, long = (
        decode("mtjd", pair, PROMPT, DecodingSettings(max_new_tokens=n, draft_length=3, best_blocks=4)) for n in (4, 9)
    )
    assert long.result.token_ids[:4] == short.result.token_ids
