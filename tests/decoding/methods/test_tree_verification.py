"""MTAD with tree verification against a naive transcription of its rule, and its one pass against plain ones."""

import math

import numpy as np
import pytest

from decoding.decode import decode
from decoding.enumeration import Toys
from decoding.methods import METHODS
from decoding.methods.acceptance import kept_node
from decoding.settings import DecodingSettings
from decoding.streams import Streams
from decoding.toy import hashed, tabled
from decoding.trace import Step
from tests.audit.plain import plain_laws, warped
from tests.decoding import naive
from tests.decoding.methods.test_mtad import NotingStream, varied
from tests.decoding.tiny import CONFIGS, PROMPT, tiny_pair

TEXT = (1, 0)


def paths_of(step: Step) -> list[tuple[int, ...]]:
    paths: list[tuple[int, ...]] = []
    for node in step.draft.nodes:
        paths.append((*(() if node.parent is None else paths[node.parent]), node.token))
    return paths


def assert_follows_the_rule(target, draft, made: DecodingSettings, eos, seed: int) -> list[int]:
    """Runs both ways on the same draws; returns how many tokens each step kept."""
    ours, theirs, next_tokens = NotingStream(seed), NotingStream(seed), NotingStream(seed + 1)
    run = Toys(METHODS["mtad"].steps, target, draft, TEXT, made, eos).run(Streams(ours, ours, next_tokens))
    p, q = (naive.warped(model.law_of, made) for model in (target, draft))
    rule_p, rule_q = (p, q) if made.temperature else (target.law_of, draft.law_of)
    searching = made.draft_search == "search" or made.temperature == 0
    text, kept = TEXT, []
    for step in METHODS["mtad"].steps(run):
        draw = naive.largest if searching else lambda w, n: naive.draw_without_replacement(w, n, theirs.pick)
        _, nodes = naive.draft_tree(rule_q, text, made.draft_length, made.beam_width, eos, draw)
        paths = paths_of(step)
        assert set(paths) == nodes
        assert all(node.scored for node in step.draft.nodes)
        for node, path in zip(step.draft.nodes, paths, strict=True):
            assert math.exp(node.joint_log_p) == pytest.approx(naive.joint(rule_p, text, path), abs=1e-12)
        best = naive.tree_kept(rule_p, rule_q, text, nodes, made.threshold)
        block = tuple(step.draft.nodes[i].token for i in step.draft.chosen)
        assert block[: len(best)] == best
        assert [verdict.accepted for verdict in step.verdicts] == [i < len(best) for i in range(len(block))]
        for i, verdict in enumerate(step.verdicts):
            largest = max(naive.joint(rule_q, text, path) for path in nodes if len(path) == i + 1)
            assert math.exp(verdict.joint_log_q) == pytest.approx(largest, abs=1e-12)
            assert verdict.passes == (naive.joint(rule_p, text, block[: i + 1]) / largest > made.threshold)
        emitted = (*(token.token for token in step.emitted), *step.discarded)
        assert emitted[: len(best)] == best
        if best and best[-1] in eos:
            assert len(emitted) == len(best)
        else:
            law = p((*text, *best))
            assert len(emitted) == len(best) + 1
            assert next_tokens.asked[-1] == pytest.approx([w for w in law if w > 0], abs=1e-12)
        assert step.cost.target_passes == 1
        text = (*text, *(token.token for token in step.emitted))
        kept.append(len(best))
    return kept


@pytest.mark.parametrize("search", ["sampling", "search", "greedy"])
@pytest.mark.parametrize("seed", range(14))
def test_tree_verification_follows_the_rule(seed, search):
    made, vocabulary, eos = varied(seed)
    changes = {"temperature": 0.0} if search == "greedy" else {"draft_search": search}
    made = made.model_copy(update={"tree_verification": True} | changes)
    target, draft = hashed(vocabulary, seed), hashed(vocabulary, seed + 100)
    assert_follows_the_rule(target, draft, made, eos, seed)


def test_a_dead_beam_may_be_kept():
    """Beam (0,) dies at depth 2, where the target finds no other node likely; it is kept, and no more."""
    draft = tabled({(): [0.5, 0.4, 0.1], (0,): [0.34, 0.33, 0.33], (1,): [0.9, 0.05, 0.05]})
    target = tabled({(): [0.9, 0.05, 0.05], (1,): [0.0, 0.5, 0.5]})
    made = DecodingSettings(top_k=0, top_p=1, draft_search="search", draft_length=2, beam_width=2, max_new_tokens=2)
    made = made.model_copy(update={"tree_verification": True, "threshold": 0.9})
    text = (2,)
    run = Toys(METHODS["mtad"].steps, target, draft, text, made).run(Streams.seeded(0, "dead"))
    step = next(METHODS["mtad"].steps(run))
    assert step.emitted[0].token == 0
    assert step.emitted[0].origin == "accepted"


def test_the_deepest_node_that_passes_wins_and_of_equals_the_largest_p():
    logs = lambda values: [math.log(value) for value in values]  # noqa: E731
    depths, q = [1, 1, 2, 2, 2], logs([0.6, 0.3, 0.2, 0.1, 0.1])
    assert kept_node(depths, logs([0.9, 0.1, 0.05, 0.15, 0.18]), q, 0.5) == 4
    assert kept_node(depths, logs([0.9, 0.1, 0.05, 0.05, 0.05]), q, 0.5) == 0
    assert kept_node(depths, logs([0.1, 0.1, 0.05, 0.05, 0.05]), q, 0.5) is None
    assert kept_node([1, 1], logs([0.5, 0.5]), logs([0.4, 0.5]), 0.5) == 0


@pytest.mark.parametrize("architecture", CONFIGS)
def test_every_node_of_the_one_pass_equals_its_root_path_alone(architecture):
    pair = tiny_pair(architecture, noise=0.3)
    for seed, changes in enumerate(({}, {"temperature": 0.0}, {"top_k": 0, "top_p": 1.0, "draft_length": 5})):
        made = DecodingSettings(max_new_tokens=10, seed=seed, tree_verification=True, threshold=0.2)
        made = made.model_copy(update=changes)
        trace = decode("mtad", pair, PROMPT, made)
        text = trace.prompt.token_ids
        for step in trace.steps:
            paths = paths_of(step)
            laws = plain_laws(pair.target.model, {text + path[:-1] for path in paths})
            for node, path in zip(step.draft.nodes, paths, strict=True):
                law = laws[text + path[:-1]]
                if made.temperature:
                    fits = warped(law, made.temperature, made.top_k, made.top_p)
                    law = min(fits, key=lambda fit: abs(float(fit[path[-1]].exp()) - math.exp(node.log_p)))
                assert math.exp(node.log_p) == pytest.approx(float(law[path[-1]].exp()), abs=1e-4)
            text += tuple(token.token for token in step.emitted)


def test_a_prompt_of_one_token():
    pair = tiny_pair("Llama")
    made = DecodingSettings(max_new_tokens=6, tree_verification=True)
    assert len(decode("mtad", pair, "w3", made).result.token_ids) == 6


def test_a_tree_keeps_at_least_as_deep_as_its_best_beam_alone():
    """Where the best beam's Q is the largest of every depth, what passes alone passes in the tree too."""
    choose = np.random.default_rng(0)
    for _ in range(200):
        depth, width = 3, 3
        q = -np.sort(choose.exponential(size=(width, depth)).cumsum(axis=1), axis=0)
        p = -choose.exponential(size=(width, depth)).cumsum(axis=1)
        depths = [d + 1 for _ in range(width) for d in range(depth)]
        node = kept_node(depths, p.ravel().tolist(), q.ravel().tolist(), 0.5)
        alone = max((d + 1 for d in range(depth) if p[0, d] - q[0, d] > math.log(0.5)), default=0)
        assert (0 if node is None else depths[node]) >= alone
