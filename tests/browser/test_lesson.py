"""The lesson in a real browser, from the first stop to the last, by keyboard; no model is asked."""

import json

import pytest
from axe_playwright_python.sync_playwright import Axe

from app.lesson import lesson_text
from tests.browser.conftest import Race
from tests.browser.test_race import STOCK_FINDINGS

pytestmark = pytest.mark.browser

STOPS = json.loads(lesson_text())
AT_REST = """() => {
    const part = document.querySelector('.pointed-at');
    const top = part?.getBoundingClientRect().top;
    const rests = top !== undefined && top === window.lastTop;
    window.lastTop = top;
    return rests;
}"""
COVERED = """() => {
    const part = document.querySelector('.pointed-at').getBoundingClientRect();
    const card = document.querySelector('.lesson-card').getBoundingClientRect();
    return { top: part.top, seen: Math.min(part.bottom, card.top) - Math.max(part.top, 0), height: part.height };
}"""


class Lesson(Race):
    """A lesson that is walked through."""

    def begin(self, query: str = "?example=") -> "Lesson":
        self.open(query)
        self.page.locator(".open-lesson").press("Enter")
        return self

    def wait_for_stop(self, number: int) -> None:
        stop = STOPS[number]
        self.page.wait_for_selector(f".lesson-card[data-stop='{number}']")
        self.page.wait_for_selector(
            f".inspector[data-lane='{stop['lane']}'][data-step='{stop['step']}']", timeout=20_000
        )
        self.page.wait_for_selector(".pointed-at", timeout=20_000)
        self.page.wait_for_function(AT_REST, polling=150)

    def text(self, part: str) -> str:
        return self.page.inner_text(f".lesson-card {part}")


@pytest.fixture
def lesson(page, server) -> Lesson:
    return Lesson(page, server).begin()


def test_every_stop_shows_its_step_and_points_at_something_in_sight(lesson: Lesson):
    passes = lesson.server.passes()
    pointed_at = set()
    for number, stop in enumerate(STOPS):
        lesson.wait_for_stop(number)
        assert lesson.text(".count") == f"Stop {number + 1} of {len(STOPS)}"
        assert (lesson.text("h2"), lesson.text(".text-of-stop")) == (stop["title"], stop["text"])
        where = lesson.page.inner_text(".inspector .where")
        assert where.startswith(f"step {stop['step'] + 1} of ")
        assert (
            lesson.page.locator(".inspector .chooser button").nth(stop["lane"]).get_attribute("aria-pressed") == "true"
        )
        assert lesson.page.locator(".pointed-at").count() == 1
        place = lesson.page.evaluate(COVERED)
        assert place["top"] >= 0
        assert place["seen"] >= 0.8 * place["height"], stop["title"]
        pointed_at.add(lesson.page.get_attribute(".pointed-at", "class"))
        lesson.page.locator(".lesson-card .next").press("Enter")
    assert not lesson.page.locator(".lesson-card").is_visible()
    assert len(pointed_at) >= 4
    assert (lesson.server.passes(), lesson.errors) == (passes, [])


def test_back_and_close(lesson: Lesson):
    lesson.wait_for_stop(0)
    assert lesson.page.locator(".lesson-card .back").is_disabled()
    lesson.page.locator(".lesson-card .next").press("Enter")
    lesson.wait_for_stop(1)
    lesson.page.locator(".lesson-card .back").press("Enter")
    lesson.wait_for_stop(0)
    lesson.page.keyboard.press("Escape")
    assert not lesson.page.locator(".lesson-card").is_visible()
    assert lesson.page.locator(".pointed-at").count() == 0
    assert lesson.page.evaluate("document.activeElement.className") == "open-lesson"


def test_the_inspector_still_listens_to_the_arrow_keys(lesson: Lesson):
    lesson.wait_for_stop(0)
    lesson.page.keyboard.press("ArrowRight")
    lesson.page.wait_for_selector(f".inspector[data-step='{STOPS[0]['step'] + 1}']")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_accessible_in_light_and_dark(page, server, theme: str):
    Lesson(page, server).begin(f"?example=&__theme={theme}").wait_for_stop(0)
    findings = {finding["id"] for finding in Axe().run(page).response["violations"]}
    assert findings - STOCK_FINDINGS == set()


def test_a_phone_shows_part_and_card_and_does_not_scroll_sideways(page, server):
    page.set_viewport_size({"width": 390, "height": 844})
    page.emulate_media(reduced_motion="reduce")
    lesson = Lesson(page, server).begin()
    for number in range(3):
        lesson.wait_for_stop(number)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert page.evaluate(COVERED)["seen"] > 250
        lesson.page.locator(".lesson-card .next").press("Enter")
