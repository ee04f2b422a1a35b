"""The views of the whole run in a real browser, on scripted models; numbers are compared with traces of the same run."""

from itertools import accumulate
from math import fsum

import pytest
from axe_playwright_python.sync_playwright import Axe
from gradio_client import Client

from decoding.trace import Trace
from tests.browser.conftest import Race
from tests.browser.scripted import CODE, IMAGE
from tests.browser.test_inspector import run
from tests.browser.test_race import STOCK_FINDINGS

pytestmark = pytest.mark.browser

TOKENS = 24
PANELS = ("log-probability", "entropy", "tokens-per-pass", "acceptance", "passes")
DRAWN = "document.querySelectorAll('.overview .plot:not(.behind) .plot-container').length === 5"
PLACE = """([panel, line, point]) => {
    const plot = document.querySelector(`.overview .${panel} .plot:not(.behind)`);
    const { xaxis, yaxis } = plot._fullLayout;
    const { x, y } = plot.data[line];
    const box = plot.getBoundingClientRect();
    return [box.left + xaxis._offset + xaxis.d2p(x[point]), box.top + yaxis._offset + yaxis.d2p(y[point])];
}"""


@pytest.fixture(scope="module")
def over(browser, server):
    page = browser.new_page(viewport={"width": 1440, "height": 1000})
    yield opened(run(page, server, "hazard", TOKENS))
    page.close()


@pytest.fixture(scope="module")
def traces(server) -> list[Trace]:
    answer = Client(server.url, verbose=False).predict("hazard", None, {"max_new_tokens": TOKENS}, api_name="/race")
    return [Trace.model_validate(trace) for trace in answer]


def opened(race: Race) -> Race:
    race.page.wait_for_function(DRAWN, timeout=60_000)
    race.page.evaluate("document.querySelectorAll('.overview details').forEach((one) => (one.open = true))")
    race.page.wait_for_selector(".overview .passes table tr")
    return race


def columns(race: Race, panel: str) -> list[list[str]]:
    """A table's columns but the first, heads and empty cells left out."""
    rows = race.page.eval_on_selector_all(
        f".overview .{panel} table tr", "rows => rows.slice(1).map(row => [...row.cells].map(cell => cell.textContent))"
    )
    return [[cell for cell in column if cell != "–"] for column in list(zip(*rows, strict=True))[1:]]


def test_numbers_by_token_are_the_traces(over: Race, traces: list[Trace]):
    tokens = [[token for step in trace.steps for token in step.emitted] for trace in traces]
    sums = [[f"{value:.3f}".replace("-", "−") for value in accumulate(t.log_p for t in lane)] for lane in tokens]
    assert columns(over, "log-probability") == sums
    entropies = [[f"{choice.entropy_p:.3f}" for step in trace.steps for choice in step.choices] for trace in traces]
    assert columns(over, "entropy") == entropies


def test_numbers_by_step_and_by_depth_are_the_traces(over: Race, traces: list[Trace]):
    last = [column[-1] for column in columns(over, "tokens-per-pass")]
    assert [float(cell.split(" = ")[1]) for cell in last] == pytest.approx(
        [trace.result.metrics.tokens_per_target_pass for trace in traces], abs=5e-4
    )
    depths = [trace.result.metrics.acceptance_by_depth for trace in traces[1:]]
    assert columns(over, "acceptance") == [
        [f"{d.accepted} of {d.drafted} ({100 * d.accepted / d.drafted:.0f} %)" for d in lane] for lane in depths
    ]
    steps, target_passes, _, draft_passes, *_ = columns(over, "passes")
    assert steps == [str(len(trace.steps)) for trace in traces]
    assert target_passes == [str(trace.result.metrics.target_passes) for trace in traces]
    assert draft_passes == [str(trace.result.metrics.draft_passes) for trace in traces]


def test_times_are_those_of_the_lanes(over: Race):
    """Two runs never take the same time, so the page is compared with itself."""
    whole = [float(cell.removesuffix(" ms")) / 1000 for cell in columns(over, "passes")[-1]]
    figures = "lanes => lanes.map(lane => [...lane.querySelectorAll('.figure')].map(figure => figure.textContent))"
    lanes = over.page.eval_on_selector_all(".lane", figures)
    assert [f"time{seconds:.1f} s" in lane for seconds, lane in zip(whole, lanes, strict=True)] == [True] * 3
    blocks = over.page.evaluate(
        "document.querySelector('.overview .passes .plot:not(.behind)').data.map(d => [d.y, d.x])"
    )
    for lane in range(3):
        drawn = fsum(x for ys, xs in blocks for y, x in zip(ys, xs, strict=True) if y == lane)
        assert 0 < drawn <= whole[lane] + 1e-3


def test_what_has_no_draft_says_so(over: Race):
    for panel in ("acceptance", "passes"):
        assert "No draft in Single-token sampling." in over.page.inner_text(f".overview .{panel} .note")


def test_a_click_on_a_point_opens_the_step_of_its_token(over: Race, traces: list[Trace]):
    lane, token = 2, 10
    step = next(step for step in traces[lane].steps if step.start <= token < step.start + len(step.emitted))
    over.page.locator(".overview .log-probability .plot:not(.behind)").scroll_into_view_if_needed()
    over.page.mouse.click(*over.page.evaluate(PLACE, ["log-probability", lane, token]))
    over.page.wait_for_selector(f".inspector[data-lane='{lane}'][data-step='{step.index}']", timeout=10_000)
    chosen = over.page.eval_on_selector(".inspector select", "box => box.selectedIndex")
    assert chosen == token - step.start


def test_texts_of_models_are_shown_and_never_executed(over: Race):
    seen = ""
    over.page.locator(".overview .entropy .plot:not(.behind)").scroll_into_view_if_needed()
    for point in range(12):
        over.page.mouse.move(*over.page.evaluate(PLACE, ["entropy", 0, point]))
        over.page.wait_for_timeout(150)
        seen += " ".join(over.page.locator(".overview .entropy .hoverlayer").all_text_contents())
    assert CODE in seen or IMAGE[:10].replace(" ", "·") in seen
    assert over.page.evaluate("window.harmed") is None
    assert over.page.locator(".overview :is(img, script, b)").count() == 0
    assert over.errors == []


def test_every_view_has_a_name_for_those_who_cannot_see_it(over: Race):
    labels = [over.page.get_attribute(f".overview .{panel} .stage", "aria-label") or "" for panel in PANELS]
    assert len(set(labels)) == len(PANELS)
    assert all(label.endswith("all lanes. Its numbers are in the table.") for label in labels)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_accessible_in_light_and_dark(page, server, theme: str):
    opened(run(page, server, "unicode", 8, f"?example=&__theme={theme}"))
    findings = {finding["id"] for finding in Axe().run(page).response["violations"]}
    assert findings - STOCK_FINDINGS == set()
    ground, dark = (
        page.evaluate("getComputedStyle(document.querySelector('.overview')).backgroundColor"),
        theme == "dark",
    )
    assert ground == ("rgb(23, 28, 34)" if dark else "rgb(255, 255, 255)")
    line = page.evaluate("document.querySelector('.overview .entropy .plot:not(.behind)').data[0].line.color")
    assert line == ("#e9ecef" if dark else "#171a1f")


def test_a_phone_shows_one_column_and_does_not_scroll_sideways(page, server):
    page.set_viewport_size({"width": 390, "height": 844})
    opened(run(page, server, "hazard", 8))
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    tops = page.eval_on_selector_all(".overview .panel", "all => all.map(one => one.getBoundingClientRect().top)")
    assert tops == sorted(set(tops))
