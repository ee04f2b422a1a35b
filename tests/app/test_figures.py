"""The figures' numbers are the step's own."""

import math
import re
from itertools import pairwise
from pathlib import Path

import plotly.graph_objects as go
import pytest

from app.figures.beams import beams
from app.figures.joint import joint
from app.figures.next_token import next_token, overlap, shown_candidates
from app.figures.style import DARK, LIGHT, NO_LABEL, template
from app.figures.text import label, number
from decoding.trace import Candidate
from tests.app.toy_steps import GOLDEN_P, GOLDEN_Q, play, settings

HOSTILE = ["<b>", "&lt;", "${7*7}", "%{x}", "a" * 40, "\u05d0\u05d1", "·天空", "</script>"]
SEARCH = settings(threshold=0.05, draft_search="search")


def spell(token: int) -> str:
    return HOSTILE[token]


def steps_of(method: str):
    return play(method, GOLDEN_P, GOLDEN_Q, SEARCH)


def figures_of(step, method: str) -> list[dict]:
    drawn = [beams(step, spell, length=4, width=4), joint(step, method, length=4)]
    drawn += [next_token(step, depth, spell) for depth in range(len(step.emitted))]
    return [figure for figure in drawn if figure]


@pytest.fixture
def rescue():
    return steps_of("mtad")[0]


@pytest.mark.parametrize("method", ["single_token", "speculative", "mtad", "typical"])
def test_every_figure_is_one_that_plotly_takes(method: str):
    for step in steps_of(method):
        for figure in figures_of(step, method):
            go.Figure(figure)


def test_both_templates_are_ones_that_plotly_takes():
    for colours in (LIGHT, DARK):
        go.layout.Template(template(colours))


def test_single_tokens_have_neither_draft_nor_verdicts():
    step = steps_of("single_token")[0]
    assert beams(step, spell, length=4, width=1) is None
    assert joint(step, "single_token", length=4) is None


def test_the_tree_shows_every_node_at_its_depth(rescue):
    nodes, dots = rescue.draft.nodes, beams(rescue, spell, length=4, width=4)["data"][-1]
    assert dots["x"] == [node.depth for node in nodes]
    for node, size in zip(nodes, dots["marker"]["size"], strict=True):
        assert (size - 5) / (24 - 5) == pytest.approx(math.sqrt(math.exp(node.log_q)))


def test_the_chosen_block_lies_along_the_top_and_no_two_nodes_on_one_spot(rescue):
    dots = beams(rescue, spell, length=4, width=4)["data"][-1]
    assert [dots["y"][i] for i in rescue.draft.chosen] == [0] * 4
    assert len(set(zip(dots["x"], dots["y"], strict=True))) == len(dots["x"])


def test_edges_lead_from_parents_to_children(rescue):
    figure = beams(rescue, spell, length=4, width=4)
    dots = figure["data"][-1]
    places = list(zip(dots["x"], dots["y"], strict=True))
    wanted = {
        (places[n.parent] if n.parent is not None else (0, 0), places[i]) for i, n in enumerate(rescue.draft.nodes)
    }
    drawn = set()
    for edges in figure["data"][:-1]:
        points = list(zip(edges["x"], edges["y"], strict=True))
        drawn |= {(points[i], points[i + 1]) for i in range(0, len(points), 3)}
    assert drawn == wanted


def test_hovering_a_node_gives_its_numbers(rescue):
    dots = beams(rescue, spell, length=4, width=4)["data"][-1]
    second, unscored = rescue.draft.chosen[1], next(i for i, n in enumerate(rescue.draft.nodes) if not n.scored)
    assert "q = 0.5 · p = 0.02" in dots["hovertext"][second]
    assert "Q = 0.3 · P = 0.01" in dots["hovertext"][second]
    assert "p = not scored" in dots["hovertext"][unscored]
    assert "P = not scored" in dots["hovertext"][unscored]


def test_kept_and_dropped_differ_in_more_than_colour():
    step = next(s for s in play("mtad", GOLDEN_P, GOLDEN_Q, settings(threshold=0.5, draft_search="search")))
    assert [verdict.accepted for verdict in step.verdicts] == [True, False, False, False]
    figure = beams(step, spell, length=4, width=4)
    symbols = [figure["data"][-1]["marker"]["symbol"][i] for i in step.draft.chosen]
    assert symbols == ["circle"] + ["circle-x-open"] * 3
    assert [(band["x0"], band["x1"]) for band in figure["layout"]["shapes"]] == [(0.5, 1.5)]


def test_axes_are_the_same_at_every_step():
    for draw in (lambda s: beams(s, spell, length=4, width=4), lambda s: joint(s, "mtad", length=4)):
        axes = [{k: v for k, v in draw(s)["layout"].items() if "axis" in k or k == "margin"} for s in steps_of("mtad")]
        assert all(one == other for one, other in pairwise(axes))


def test_the_joint_of_a_rescue(rescue):
    log_p, log_q, ratios = joint(rescue, "mtad", length=4)["data"]
    assert log_p["y"] == [verdict.joint_log_p for verdict in rescue.verdicts]
    assert log_q["y"] == [verdict.joint_log_q for verdict in rescue.verdicts]
    assert ratios["y"] == pytest.approx([0.5 / 0.6, 0.01 / 0.3, 0.05, 0.075])
    assert ratios["marker"]["symbol"] == ["circle", "x", "x", "circle"]
    assert ["rescued" in text for text in ratios["text"]] == [False, True, True, False]


def test_the_line_of_the_threshold_and_the_band_of_what_was_kept(rescue):
    band, line = joint(rescue, "mtad", length=4)["layout"]["shapes"]
    assert (band["x0"], band["x1"]) == (0.5, 4.5)
    assert (line["y0"], line["y1"]) == (0.05, 0.05)


def test_a_probability_of_zero_is_said_to_be_one():
    step = play("mtad", GOLDEN_P, GOLDEN_Q, settings(top_k=1, threshold=0.5, draft_search="search", beam_width=1))[0]
    zeros = [verdict.joint_log_p == -math.inf for verdict in step.verdicts]
    assert any(zeros)
    log_p, _, ratios = joint(step, "mtad", length=4)["data"]
    assert [text == "P = 0" for text in log_p["text"]] == zeros
    assert [text == "P = 0" for text in ratios["text"]] == zeros
    assert all(math.isfinite(y) for y in log_p["y"] + ratios["y"])


def test_speculative_bars_and_draws():
    for step in steps_of("speculative"):
        *_, bars, draws = joint(step, "speculative", length=4)["data"]
        ratios = [math.exp(verdict.log_p - verdict.log_q) for verdict in step.verdicts]
        assert bars["y"] == pytest.approx([min(1, ratio) for ratio in ratios])
        assert draws["y"] == [verdict.uniform for verdict in step.verdicts]
        for verdict, symbol in zip(step.verdicts, draws["marker"]["symbol"], strict=True):
            assert symbol == ("circle" if verdict.passes else "x")


def test_typical_bars_and_what_is_asked():
    """The mark stands inside the bar, below p̃, where the token passes."""
    seen = set()
    for step in play("typical", GOLDEN_P, GOLDEN_Q, settings(threshold=0.3)):
        *_, bars, asked = joint(step, "typical", length=4)["data"]
        assert bars["y"] == pytest.approx([math.exp(verdict.log_p) for verdict in step.verdicts])
        assert asked["y"] == [verdict.threshold for verdict in step.verdicts]
        for height, mark, symbol in zip(bars["y"], asked["y"], asked["marker"]["symbol"], strict=True):
            assert symbol == ("circle" if height > mark else "x")
            seen.add(symbol)
    assert seen == {"circle", "x"}


@pytest.mark.parametrize("method", ["single_token", "speculative", "mtad"])
def test_the_laws_of_the_next_token(method: str):
    for step in steps_of(method):
        for depth, choice in enumerate(step.choices):
            figure = next_token(step, depth, spell)
            shown = shown_candidates(choice.top, step.emitted[depth].token)
            assert [trace["x"] for trace in figure["data"][:4]] == [
                [c.p_warped for c in shown],
                [c.q_warped for c in shown],
                [c.p for c in shown],
                [c.q for c in shown],
            ]
            marked = [i for i, text in enumerate(figure["layout"]["yaxis"]["ticktext"]) if text.startswith("▸")]
            assert [shown[i].token for i in marked] == [step.emitted[depth].token]


def test_the_residual_is_framed_where_a_token_was_replaced():
    framed = 0
    for step in steps_of("speculative"):
        for depth, choice in enumerate(step.choices):
            frames = next_token(step, depth, spell)["data"][4:]
            assert bool(frames) == (step.emitted[depth].origin == "resampled")
            if not frames:
                continue
            framed += 1
            above = {c.token: c.p_warped - c.q_warped for c in choice.top if c.p_warped > c.q_warped}
            shown = [c.token for c in shown_candidates(choice.top, step.emitted[depth].token)]
            assert frames[0]["x"] == pytest.approx([above.get(i, 0) / sum(above.values()) for i in shown])
            assert sum(frames[0]["x"]) == pytest.approx(1)
    assert framed


def test_the_token_taken_is_shown_however_unlikely():
    top = [Candidate(token=i, p=0.05, p_warped=0.05, q=None, q_warped=None) for i in range(15)]
    assert 14 in [c.token for c in shown_candidates(top, taken=14)]
    assert len(shown_candidates(top, taken=14)) == 10


def candidate(p: float, q: float | None) -> Candidate:
    return Candidate(token=0, p=p, p_warped=p, q=q, q_warped=q)


def test_overlap_is_exact_where_everything_is_listed_and_bounded_where_not():
    assert overlap([candidate(0.7, 0.4), candidate(0.3, 0.6)]) == pytest.approx((0.7, 0.7))
    assert overlap([candidate(0.5, 0.4), candidate(0.3, 0.4)]) == pytest.approx((0.7, 0.9))
    assert overlap([candidate(0.5, None)]) is None


def test_text_of_tokens_is_only_text(rescue):
    assert label("<b>&amp;", 20)[1:-1] == "&lt;b&gt;&amp;amp;"
    for figure in figures_of(rescue, "mtad"):
        texts = re.findall(r"'(?:text|hovertext|ticktext)': (\[.*?\])", str(figure))
        assert texts
        assert not re.search(r"<(?!br>)[a-z/]", " ".join(texts))
        assert "template" not in str(figure), "a template would read %{x} in a token"


def test_labels_fit_their_column():
    dots = beams(steps_of("mtad")[0], lambda token: "x" * 40, length=4, width=4)["data"][-1]
    assert max(map(len, dots["text"])) <= 12
    crowded = beams(steps_of("mtad")[0], lambda token: "x" * 40, length=16, width=4)["data"][-1]
    assert set(crowded["text"]) == {NO_LABEL}


def test_colours_are_those_of_the_page():
    css = (Path(__file__).parent.parent.parent / "assets" / "page.css").read_text(encoding="utf-8")
    light, dark = css.split(".dark .gradio-container", 1)
    names = {"ink": "ink", "muted": "muted", "line": "line", "card": "card", "target": "sampled", "draft": "forced"}
    names |= {"kept": "accepted", "dropped": "resampled", "pink": "bonus"}
    for role, name in names.items():
        assert f"--{name}: {LIGHT[role]};" in light
        assert f"--{name}: {DARK[role]};" in dark


@pytest.mark.parametrize(
    ("value", "written"),
    [(1.0, "1"), (0.5, "0.5"), (0.001, "0.001"), (0.00004, "4·10⁻⁵"), (9999.0, "1·10⁴"), (math.inf, "∞"), (0.0, "0")],
)
def test_numbers_as_people_write_them(value: float, written: str):
    assert number(value) == written
