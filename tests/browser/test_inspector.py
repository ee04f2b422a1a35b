"""The inspector in a real browser, on scripted models; its numbers are compared with the trace of the same run."""

from math import exp

import pytest
from axe_playwright_python.sync_playwright import Axe
from gradio_client import Client

from app.figures.text import number
from decoding.methods.acceptance import kept_prefix
from decoding.trace import Step, Trace
from tests.browser.conftest import ALL_OVER, Race
from tests.browser.scripted import CODE, IMAGE
from tests.browser.test_race import STOCK_FINDINGS

pytestmark = pytest.mark.browser

TOKENS = 24
SINGLE, SPECULATIVE, MTAD = range(3)
QUIET = "document.activeElement.blur()"
MOVES = """async (keys) => {
    const times = [];
    for (const key of keys) {
        const start = performance.now();
        document.body.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
        await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));  // after the frame was painted
        times.push(performance.now() - start);
        await new Promise((done) => setTimeout(done, 400));
    }
    return times.sort((a, b) => a - b);
}"""


class Inspected(Race):
    """A race whose steps are looked at."""

    def choose(self, lane: int) -> None:
        self.page.locator(".inspector .chooser button").nth(lane).click()
        self.page.evaluate(QUIET)
        self.press("Home")

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)
        self.settle()

    def settle(self) -> None:
        self.page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")

    def where(self) -> str:
        return self.page.inner_text(".inspector .where")

    def words(self) -> str:
        return self.page.inner_text(".inspector .words")

    def step(self) -> tuple[int, int]:
        lane, step = (self.page.get_attribute(".inspector", f"data-{name}") for name in ("lane", "step"))
        return int(lane or -1), int(step or -1)

    def open_tables(self) -> None:
        self.page.evaluate("document.querySelectorAll('.inspector details').forEach((one) => (one.open = true))")
        self.page.wait_for_selector(".inspector .next table tr")

    def table(self, panel: str) -> list[list[str]]:
        rows = "rows => rows.slice(1).map(row => [...row.cells].map(cell => cell.textContent))"
        return self.page.eval_on_selector_all(f".inspector .{panel} table tr", rows)

    def suppose(self, threshold: float) -> str:
        change = "(box, value) => { box.value = value; box.dispatchEvent(new Event('input')); }"
        self.page.eval_on_selector(".inspector .what-if input", change, str(threshold))
        self.settle()
        return self.page.inner_text(".inspector .answer")


def run(page, server, prompt: str, tokens: int = TOKENS, query: str = "?example=") -> Inspected:
    inspected = Inspected(page, server)
    inspected.open(query)
    inspected.setting("New tokens", tokens)
    inspected.run(prompt)
    page.wait_for_selector(".lane .token", timeout=60_000)
    page.wait_for_function(ALL_OVER, timeout=240_000)
    page.wait_for_selector(".inspector .next .plot:not(.behind) svg", timeout=60_000)
    page.evaluate(QUIET)
    return inspected


@pytest.fixture(scope="module")
def inspected(browser, server):
    page = browser.new_page(viewport={"width": 1440, "height": 1000})
    yield run(page, server, "hazard")
    page.close()


@pytest.fixture(scope="module")
def traces(server) -> list[Trace]:
    answer = Client(server.url, verbose=False).predict("hazard", None, {"max_new_tokens": TOKENS}, api_name="/race")
    return [Trace.model_validate(trace) for trace in answer]


def test_keys_move_from_step_to_step(inspected: Inspected):
    inspected.choose(MTAD)
    last = int(inspected.where().split()[-1])
    inspected.press("ArrowRight", "ArrowRight")
    assert inspected.where() == f"step 3 of {last}"
    inspected.press("ArrowLeft")
    assert inspected.where() == f"step 2 of {last}"
    inspected.press("End", "ArrowRight")
    assert inspected.where() == f"step {last} of {last}"
    inspected.press("Home", "ArrowLeft")
    assert inspected.where() == f"step 1 of {last}"


def test_space_plays_and_pauses(inspected: Inspected):
    inspected.choose(SINGLE)
    inspected.press(" ")
    inspected.page.locator(".inspector .where", has_text="step 3 of").wait_for(timeout=20_000)
    inspected.press(" ")
    here = inspected.where()
    inspected.page.wait_for_timeout(1500)
    assert inspected.where() == here


def test_keys_belong_to_whoever_is_typing(inspected: Inspected):
    inspected.choose(MTAD)
    inspected.page.focus("#prompt textarea")
    inspected.press("ArrowRight", "End", " ")
    assert inspected.step() == (MTAD, 0)
    inspected.page.evaluate(QUIET)


def test_the_scrubber_and_the_buttons_move_too(inspected: Inspected):
    inspected.choose(SINGLE)
    inspected.page.get_by_role("button", name="Step forward").click()
    inspected.settle()
    assert inspected.step() == (SINGLE, 1)
    inspected.page.get_by_role("slider", name="Step", exact=True).fill("5")
    inspected.settle()
    assert inspected.step() == (SINGLE, 4)
    inspected.page.evaluate(QUIET)


def test_a_click_on_a_token_opens_its_step(inspected: Inspected):
    inspected.choose(SINGLE)
    token = inspected.page.locator(f".lane[data-lane='{SPECULATIVE}'] .token.accepted").nth(5)
    step = int(token.get_attribute("data-step") or -1)
    token.click()
    inspected.settle()
    assert inspected.step() == (SPECULATIVE, step)
    own = f".lane[data-lane='{SPECULATIVE}'] .token[data-step='{step}']"
    assert inspected.page.locator(".token.current").count() == inspected.page.locator(own).count()
    chosen = inspected.page.eval_on_selector(".inspector select", "box => box.selectedOptions[0].textContent")
    assert (token.text_content() or "").strip()[:4] in chosen


def joints(step: Step) -> tuple[list[float], list[float]]:
    return [v.joint_log_p for v in step.verdicts], [v.joint_log_q for v in step.verdicts]


@pytest.mark.parametrize("lane", [SINGLE, SPECULATIVE, MTAD])
def test_every_number_is_the_traces(inspected: Inspected, traces: list[Trace], lane: int):
    inspected.choose(lane)
    inspected.open_tables()
    for step in traces[lane].steps:
        assert inspected.where() == f"step {step.index + 1} of {len(traces[lane].steps)}"
        shown = [] if lane == SINGLE else inspected.table("joint")
        assert [row[2:6] for row in shown] == [
            [number(exp(value)) for value in (v.log_q, v.log_p, v.joint_log_q, v.joint_log_p)] for v in step.verdicts
        ]
        top = {(number(c.p_warped), number(c.p)) for c in step.choices[-1].top}
        laws = inspected.table("next")
        assert laws
        assert {(row[1], row[3]) for row in laws} <= top
        inspected.press("ArrowRight")


def test_what_if_keeps_what_the_rule_keeps(inspected: Inspected, traces: list[Trace]):
    inspected.choose(MTAD)
    for step in traces[MTAD].steps:
        for threshold in (0.01, 0.2, 0.9, 1.0):
            kept = kept_prefix(*joints(step), threshold)
            answer = inspected.suppose(threshold)
            assert answer.startswith(f"This step would keep {kept} of {len(step.verdicts)};")
        inspected.press("ArrowRight")
    steps = traces[MTAD].steps
    mean = sum(kept_prefix(*joints(step), 0.9) + 1 for step in steps) / len(steps)
    assert f"Over {len(steps)} steps: {mean:.2f} tokens a step instead of" in inspected.suppose(0.9)
    assert "later steps would have differed" in inspected.suppose(0.9)


def test_what_if_is_for_mtad_alone(inspected: Inspected):
    inspected.choose(SPECULATIVE)
    assert not inspected.page.get_by_label("What if τ were").is_visible()


def test_texts_of_models_are_shown_and_never_executed(inspected: Inspected):
    inspected.open_tables()
    seen = ""
    for lane in (SINGLE, SPECULATIVE, MTAD):
        inspected.choose(lane)
        for _ in range(8):
            seen += inspected.page.text_content(".inspector") or ""
            inspected.press("ArrowRight")
    for hostile in (CODE, IMAGE[:10], "</script>", "{{value}}"):
        assert hostile.replace(" ", "·") in seen
    assert inspected.page.evaluate("window.harmed") is None
    assert inspected.page.locator(".inspector :is(img, script, b)").count() == 0
    assert inspected.errors == []


def test_zoom_is_kept_from_step_to_step(inspected: Inspected):
    inspected.choose(MTAD)
    plot = inspected.page.locator(".inspector .joint .plot:not(.behind)")
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    inspected.page.mouse.move(box["x"] + 150, box["y"] + 40)
    inspected.page.mouse.down()
    inspected.page.mouse.move(box["x"] + 260, box["y"] + 100, steps=4)
    inspected.page.mouse.up()
    inspected.page.wait_for_timeout(500)
    span = "document.querySelector('.inspector .joint .plot:not(.behind)').layout.xaxis.range"
    zoomed = inspected.page.evaluate(span)
    assert zoomed[1] - zoomed[0] < 3.9
    inspected.press("ArrowRight")
    assert inspected.page.evaluate(span) == zoomed
    inspected.page.mouse.dblclick(box["x"] + 200, box["y"] + 60)
    inspected.page.wait_for_function(f"{span}[1] === 4.5", timeout=10_000)


def test_nothing_is_asked_of_others_and_nothing_can_be_uploaded(inspected: Inspected):
    inside = (inspected.server.url, "data:", "blob:")
    assert [url for url in inspected.requests if not url.startswith(inside)] == []
    assert inspected.page.locator(".inspector .modebar-btn").count() == 0


def test_moving_a_step_is_measured(browser, server):
    """Prints how long a move takes from the key to the painted frame; times are this machine's, so none is asserted."""
    page = browser.new_page(viewport={"width": 1440, "height": 1000})
    inspected = run(page, server, "plain", tokens=128)
    for lane in (SINGLE, SPECULATIVE, MTAD):
        inspected.choose(lane)
        page.wait_for_timeout(1000)
        times = page.evaluate(MOVES, ["ArrowRight"] * 20)
        print(
            f"lane {lane}: median {times[len(times) // 2]:.0f} ms, 95th percentile {times[int(0.95 * len(times))]:.0f} ms"
        )
        assert inspected.step() == (lane, 20)
    page.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_accessible_in_light_and_dark(page, server, theme: str):
    inspected = run(page, server, "unicode", query=f"?example=&__theme={theme}")
    inspected.open_tables()
    inspected.suppose(0.3)
    findings = {finding["id"]: finding for finding in Axe().run(page).response["violations"]}
    unknown = {
        name: [node["html"][:200] for node in findings[name]["nodes"]] for name in findings.keys() - STOCK_FINDINGS
    }
    assert unknown == {}


def test_a_phone_shows_one_column_and_does_not_scroll_sideways(page, server):
    page.set_viewport_size({"width": 390, "height": 844})
    inspected = run(page, server, "hazard", tokens=16)
    inspected.open_tables()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    tops = page.eval_on_selector_all(".inspector .panel", "all => all.map(one => one.getBoundingClientRect().top)")
    assert tops == sorted(set(tops))
