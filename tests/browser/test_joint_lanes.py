"""Exact MTJD and verified trees in a race, and the best block on demand, as a person would use them."""

from math import exp
from urllib.parse import urlencode

import pytest
from gradio_client import Client
from playwright.sync_api import Page

from app.figures.text import number
from decoding.trace import Trace
from tests.browser.conftest import Race, Server
from tests.browser.test_keeping import lane_field, open_lanes, run_short, titles

pytestmark = pytest.mark.browser

LANES = ["mtad", "mtad,tree_verification=true", "mtjd,draft_length=3,best_blocks=4"]
FEW = {"max_new_tokens": 12}
TREE, EXACT = 1, 2


@pytest.fixture(scope="module")
def traces(server: Server) -> list[Trace]:
    answer = Client(server.url, verbose=False).predict("plain", LANES, FEW, api_name="/race")
    return [Trace.model_validate(trace) for trace in answer]


@pytest.fixture
def linked(page: Page, server: Server) -> Race:
    """The race that a link asks for, run."""
    query = urlencode({"prompt": "plain", "lane": LANES, **FEW}, doseq=True)
    race = Race(page, server).open(f"?{query}")
    race.wait_for_status("Restored from the link")
    page.click("#run")
    race.wait_for_status("Finished")
    return race


def open_step(race: Race, lane: int, step: int = 0) -> None:
    race.page.locator(".inspector .chooser button").nth(lane).click()
    race.page.get_by_role("slider", name="Step", exact=True).fill(str(step + 1))
    race.page.wait_for_selector(f".inspector[data-lane='{lane}'][data-step='{step}']")
    race.page.evaluate("document.querySelectorAll('.inspector details').forEach((one) => (one.open = true))")
    race.page.wait_for_selector(".inspector .joint table tr")


def table(race: Race) -> list[list[str]]:
    rows = "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))"
    return race.page.eval_on_selector_all(".inspector .joint table tr", rows)


def test_the_lanes_write_what_the_methods_write(linked: Race, traces: list[Trace]):
    assert linked.states() == ["finished"] * 3
    assert linked.texts() == [trace.result.text for trace in traces]


def test_a_verified_tree_is_compared_with_the_largest_q(linked: Race, traces: list[Trace]):
    open_step(linked, TREE)
    head, *rows = table(linked)
    assert head == ["depth", "token", "q", "p", "max Q", "P", "P/max Q", "τ", "outcome"]
    step = traces[TREE].steps[0]
    bars = [max(n.joint_log_q for n in step.draft.nodes if n.depth == v.depth) for v in step.verdicts]
    assert [row[4] for row in rows] == [number(exp(bar)) for bar in bars]
    assert [row[5] for row in rows] == [number(exp(v.joint_log_p)) for v in step.verdicts]
    assert f"{len(step.draft.nodes)} drafted tokens" in linked.page.inner_text(".inspector .words")


def test_the_blocks_of_an_exact_search_are_listed(linked: Race, traces: list[Trace]):
    open_step(linked, EXACT)
    assert linked.page.inner_text(".inspector .joint h3") == "Joint law"
    head, *rows = table(linked)
    assert head == ["rank", "block", "P", "drawn with", "state"]
    step = traces[EXACT].steps[0]
    joint = [exp(step.draft.nodes[end].joint_log_p) for end in step.search.blocks]
    assert [row[2] for row in rows] == [number(p) for p in joint]
    assert [row[3] for row in rows] == [number(p / sum(joint)) for p in joint]
    words = linked.page.inner_text(".inspector .words")
    assert f"{step.search.evaluations} prefixes scored in {step.cost.target_passes} passes" in words


def test_the_best_block_is_searched_for_on_demand(linked: Race):
    open_step(linked, 0)
    linked.page.get_by_role("button", name="Find the best block there is").click()
    answer = linked.page.locator(".inspector .best-block .note", has_text="prefixes scored on the target")
    answer.wait_for(timeout=20_000)
    assert "The kept block is the most probable one of 4 tokens: “·the·sky·is·blue”" in answer.inner_text()
    linked.page.get_by_role("button", name="Step forward").click()
    linked.page.get_by_role("button", name="Find the best block there is").wait_for()  # each step has its own
    linked.page.get_by_role("button", name="Step back").click()
    answer.wait_for()
    open_step(linked, EXACT)
    assert linked.page.locator(".inspector .best-block").is_hidden()
    assert linked.errors == []


def test_the_lanes_are_made_in_the_editor(race: Race):
    open_lanes(race)
    race.page.get_by_role("button", name="Remove lane 1").click()
    lane_field(race, 1, "Method").select_option("mtad")
    lane_field(race, 1, "Tree verification").select_option("True")
    lane_field(race, 2, "Method").select_option("mtjd")
    run_short(race)
    assert titles(race) == ["MTAD, tree", "MTJD, exact"]
    assert race.states() == ["finished"] * 2
