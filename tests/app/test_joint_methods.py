"""Exact MTJD and verified trees on the page: words, figures and tables say what the step holds."""

import json
import math

import plotly.graph_objects as go
import pytest

from app.figures.beams import MOST_BLOCKS, beams, found_blocks
from app.figures.blocks import ROWS, blocks
from app.inspector import block_table, bound_note, pack
from app.narration import how
from app.step_words import Telling, words
from decoding.lane import Lane, lane_titles
from decoding.methods.acceptance import kept_node
from tests.app.toy_steps import GOLDEN_P, GOLDEN_Q, play, settings

WORDS = ["·the", "·sky", "·is", "·blue", "·and", "·wide", "·red", "<end>"]
TREE = settings(threshold=0.05, draft_search="search", tree_verification=True)
EXACT = settings(draft_length=3, best_blocks=20, search_budget=400)


def spell(token: int) -> str:
    return WORDS[token]


def telling(method, made) -> Telling:
    return Telling(method, made, spell, frozenset({7}))


def first(method, made):
    return play(method, GOLDEN_P, GOLDEN_Q, made, frozenset({7}))[0]


def test_a_verified_tree_in_words():
    assert words(first("mtad", TREE), telling("mtad", TREE)).startswith(
        "16 drafted tokens in 8 paths scored in one pass; 4 tokens kept: P/max Q = 0.075 > τ = 0.05. "
    )
    strict = TREE.model_copy(update={"threshold": 0.9})
    assert words(first("mtad", strict), telling("mtad", strict)).startswith(
        "16 drafted tokens in 8 paths scored in one pass, none kept: the largest ratio of any, at depth 1, is "
        "P/max Q = 0.833, not above τ = 0.9. "
    )


def test_an_exact_search_in_words():
    greedy = settings(temperature=0.0)
    assert words(first("mtjd", greedy), telling("mtjd", greedy)) == (
        "17 prefixes scored in 4 passes: “·sky·blue·and·sky” (P = 0.063) is the most probable block of all."
    )
    told = words(first("mtjd", EXACT), telling("mtjd", EXACT))
    assert "the 20 most probable blocks are found exactly." in told
    assert "was drawn: it has" in told


def test_a_search_that_ran_out_of_budget_says_so():
    short = settings(search_budget=16, best_blocks=12)
    told = words(first("mtjd", short), telling("mtjd", short))
    assert "the budget ended with 12 blocks found, none of them proven; no other block has more than P = 0.126." in told
    greedy = settings(search_budget=16, temperature=0.0, draft_length=12)
    told = words(first("mtjd", greedy), telling("mtjd", greedy))
    assert "the best block found before the budget ended; the best of all is at most 2 times as probable." in told


def test_the_joint_law_is_that_of_the_blocks_found():
    step = first("mtjd", EXACT)
    figure = blocks(step, spell)
    go.Figure(figure)
    bars = figure["data"][0]
    found = [math.exp(step.draft.nodes[end].joint_log_p) for end in step.search.blocks]
    assert len(bars["x"]) == ROWS
    assert bars["x"][: ROWS - 1] == pytest.approx(found[: ROWS - 1])
    assert figure["layout"]["shapes"][0]["x0"] == pytest.approx(math.exp(step.search.bound))
    assert sum(text.startswith("▸") for text in figure["layout"]["yaxis"]["ticktext"]) == 1
    rows = block_table(step, spell)
    assert float(rows[0][2]) == pytest.approx(found[0], rel=1e-2)
    assert float(rows[0][3]) == pytest.approx(found[0] / sum(found), rel=1e-2)
    assert sum("written" in row[-1] for row in rows) == 1
    assert blocks(first("mtad", TREE), spell) is None


def test_the_tree_of_a_search_shows_the_blocks_found_and_the_one_written():
    for step in play("mtjd", GOLDEN_P, GOLDEN_Q, EXACT):
        nodes, chosen = found_blocks(step.draft, step.search)
        assert [nodes[i].token for i in chosen] == [step.draft.nodes[i].token for i in step.draft.chosen]
        parents = {node.parent for node in nodes}
        assert sum(i not in parents for i in range(len(nodes))) <= MOST_BLOCKS + 1
        for node in nodes:
            assert node.depth == (1 if node.parent is None else nodes[node.parent].depth + 1)
        figure = beams(step, spell, length=3, width=12)
        go.Figure(figure)
        dots = figure["data"][-1]
        assert len(set(zip(dots["x"], dots["y"], strict=True))) == len(nodes)
        assert min(dots["y"]) > figure["layout"]["yaxis"]["range"][0]


@pytest.mark.parametrize("search", ["sampling", "search"])
def test_what_if_of_a_tree_is_the_rule(search):
    """The page keeps the deepest depth whose best P exceeds τ times its best Q: as many tokens as the rule does."""
    made = TREE.model_copy(update={"draft_search": search})
    for step in play("mtad", GOLDEN_P, GOLDEN_Q, made):
        nodes = step.draft.nodes
        joints = json.loads(pack(step, telling("mtad", made)))["joints"]
        for threshold in (0.01, 0.05, 0.2, 0.5, 0.9):
            passing = [i for i, (p, q) in enumerate(joints, start=1) if p is not None and p - q > math.log(threshold)]
            node = kept_node(
                [n.depth for n in nodes], [n.joint_log_p for n in nodes], [n.joint_log_q for n in nodes], threshold
            )
            assert max(passing, default=0) == (0 if node is None else nodes[node].depth)


def test_the_bound_is_stated_and_holds():
    for made in (TREE, TREE.model_copy(update={"tree_verification": False})):
        step = first("mtad", made)
        assert bound_note(step) == (
            "Bound: the kept part's perplexity is 3.33 under the target, less than 1.74 · τ^(−1/4) = 3.69 from the draft's."
        )
    assert bound_note(first("mtjd", EXACT)) == ""
    assert bound_note(first("speculative", settings())) == ""


def test_titles_and_descriptions_tell_them_apart():
    lanes = [Lane.parse(text, settings()) for text in ("mtad", "mtad,tree_verification=True", "mtjd")]
    assert lane_titles(lanes) == ["MTAD", "MTAD, tree", "MTJD, exact"]
    assert "all scored in one pass" in how("mtad", TREE)
    assert "its 20 most probable blocks of 3 tokens" in how("mtjd", EXACT)
    assert "its most probable block of 4 tokens" in how("mtjd", settings(temperature=0.0))
