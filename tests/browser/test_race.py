"""The race in a real browser, on scripted models."""

import time

import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.browser.conftest import ALL_OVER, Race, wait_for
from tests.browser.scripted import CODE, FAILING, IMAGE

pytestmark = pytest.mark.browser

STOCK_FINDINGS = {"image-redundant-alt"}  # gradio's footer


def test_three_lanes_write_side_by_side(race: Race):
    race.setting("New tokens", 32)
    race.run("plain")
    race.page.wait_for_function(
        """[...document.querySelectorAll('.lane')].every(l => l.querySelector('.token') && l.dataset.state === 'running')""",
        timeout=60_000,
    )
    race.wait_until_over()
    assert race.states() == ["finished"] * 3
    assert [text[:22] for text in race.texts()] == [" the sky is blue and w"] * 3
    assert race.status().startswith("Finished: 96 tokens in 3 lanes")
    verdicts = race.page.locator(".lane .speed strong").all_text_contents()
    assert verdicts[0] == "The yardstick."
    assert all("× the speed of single-token sampling" in verdict for verdict in verdicts[1:])
    token = race.page.locator(".lane[data-lane='1'] .token.accepted").first
    assert token.get_attribute("data-lane") == "1"
    assert token.get_attribute("data-step") == "0"
    assert race.errors == []


def test_tokens_are_added_and_never_redrawn(race: Race):
    race.setting("New tokens", 24)
    race.run("plain")
    race.page.wait_for_selector(".lane .token", timeout=60_000)
    race.page.evaluate("window.first = document.querySelector('.lane .token')")
    race.wait_until_over()
    assert race.page.evaluate("window.first === document.querySelector('.lane .token')")


def test_stop_ends_the_compute_within_one_step(race: Race):
    race.setting("New tokens", 400)
    race.run("plain")
    race.page.wait_for_selector(".lane[data-lane='2'] .token", timeout=60_000)
    race.page.click("#stop")
    race.wait_for_status("Stopped")
    passes = race.server.passes()
    time.sleep(1)
    assert race.server.passes() == passes
    assert "stopped" in race.states()
    assert all(race.texts())
    assert race.page.locator(".remark").first.text_content() == "Stopped before its end."
    assert race.page.locator("#stop").is_disabled()


def test_stop_takes_effect_between_two_passes(race: Race):
    """From the click to the last pass there is time for the click to arrive, and not for a step of a drafting lane."""
    race.setting("New tokens", 400)
    race.run("plain")
    race.page.wait_for_selector(".lane .token", timeout=60_000)
    before = race.server.passes()
    race.page.click("#stop")
    race.wait_for_status("Stopped")
    assert race.server.passes() - before < 100  # a whole race has over a thousand


def test_leaving_the_page_ends_the_compute(race: Race):
    race.setting("New tokens", 400)
    race.run("plain")
    race.page.wait_for_selector(".lane .token", timeout=60_000)
    race.page.goto("about:blank")

    def at_rest() -> bool:
        passes = race.server.passes()
        time.sleep(0.5)
        return race.server.passes() == passes

    wait_for(at_rest, seconds=5)


def test_a_new_run_replaces_the_one_under_way(race: Race):
    race.setting("New tokens", 400)
    race.run("plain")
    race.page.wait_for_selector(".lane .token", timeout=60_000)
    race.run("short")
    race.page.wait_for_selector(".lane .part.special", timeout=60_000)
    race.page.wait_for_function(ALL_OVER, timeout=60_000)
    assert {text.split("<")[0][:4] for text in race.texts()} == {" the"}
    race.wait_for_status("Finished")


@pytest.mark.parametrize(("prompt", "sentence"), [("  ", "The prompt is empty"), ("x" * 600, "The prompt is too long")])
def test_a_prompt_that_cannot_be_run_is_a_sentence_and_keeps_the_last_run(race: Race, prompt: str, sentence: str):
    race.setting("New tokens", 12)
    race.run("plain")
    race.wait_until_over()
    before = race.texts()
    race.run(prompt)
    assert race.wait_for_status(sentence).endswith(".") or "type" in race.status()
    assert race.texts() == before
    assert race.page.get_attribute("#status [role=status]", "aria-live") == "polite"


def test_texts_of_models_are_never_executed(race: Race):
    race.setting("New tokens", 16)
    race.run("hazard ${window.harmed=1} <img src=x onerror=window.harmed=1>")
    race.wait_until_over()
    for text in race.texts():
        assert CODE in text
        assert IMAGE in text
        assert "</script>" in text
    assert race.page.evaluate("window.harmed") is None
    assert race.page.locator(".lane img").count() == 0
    assert race.errors == []


def test_unicode_is_whole_in_every_lane(race: Race):
    race.setting("New tokens", 22)
    race.run("unicode: 早上好 🌅\n👩‍🚀")
    race.wait_until_over()
    assert race.states() == ["finished"] * 3
    for text in race.texts():
        assert "�" not in text
        assert "😀" in text
        assert "天" in text
        assert "\n" in text
    assert race.page.locator(".lane .part.byte").first.text_content() == "F0"


def test_a_lane_that_breaks_leaves_the_others_alone(race: Race):
    race.setting("New tokens", 12)
    race.run(f"plain {FAILING}")
    race.wait_until_over()
    assert race.states() == ["finished", "failed", "failed"]
    assert "broke off" in (race.page.locator(".remark").nth(1).text_content() or "")


def test_two_visitors_do_not_mix(race: Race, browser, server):
    other_page = browser.new_page()
    other = Race(other_page, server).open()
    race.setting("New tokens", 40)
    other.setting("New tokens", 12)
    race.run("plain")
    race.page.wait_for_selector(".lane .token", timeout=60_000)
    other.run("unicode")
    other.wait_for_status("Waiting")
    other.page.get_by_text("queue: 1/1").wait_for()
    other.page.click("#stop")
    other.wait_for_status("Stopped")
    other.run("unicode")
    race.wait_until_over()
    other.wait_until_over()
    assert any("😀" in text for text in other.texts())
    assert not any("😀" in text for text in race.texts())
    other_page.close()


def test_refused_tokens_are_shown_on_request(race: Race):
    race.setting("New tokens", 24)
    race.run("plain")
    race.wait_until_over()
    refused = race.page.locator(".lane[data-lane='1'] .token.refused").first
    assert not refused.is_visible()
    race.page.check(".show-refused input")
    assert refused.is_visible()


def test_the_browser_asks_nobody_else(race: Race):
    race.setting("New tokens", 8)
    race.run("plain")
    race.wait_until_over()
    inside = (race.server.url, "data:", "blob:")
    assert [url for url in race.requests if not url.startswith(inside)] == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_accessible_in_light_and_dark(page, server, theme: str):
    race = Race(page, server).open(f"?example=&__theme={theme}")
    race.setting("New tokens", 24)
    race.run("unicode")
    race.wait_until_over()
    race.page.check(".show-refused input")
    time.sleep(0.5)
    findings = {finding["id"]: finding for finding in Axe().run(page).response["violations"]}
    unknown = {
        name: [node["html"][:200] for node in findings[name]["nodes"]] for name in findings.keys() - STOCK_FINDINGS
    }
    assert unknown == {}


def test_a_phone_does_not_scroll_sideways(page, server):
    page.set_viewport_size({"width": 390, "height": 844})
    race = Race(page, server).open()
    race.setting("New tokens", 16)
    race.run("hazard")
    race.wait_until_over()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    tops = page.eval_on_selector_all(".lane", "lanes => lanes.map(lane => lane.getBoundingClientRect().top)")
    assert tops == sorted(set(tops)), "lanes stand one below the other"


def test_the_controls_are_reachable_by_keyboard(race: Race):
    race.page.focus("#prompt textarea")
    reached = set()
    for _ in range(8):
        race.page.keyboard.press("Tab")
        reached.add(race.page.evaluate("document.activeElement.id || document.activeElement.className"))
    assert "run" in reached
    race.page.focus("#prompt textarea")
    race.page.keyboard.press("Shift+Enter")
    race.page.wait_for_selector(".lane .token", timeout=60_000)
    race.page.click("#stop")
    race.wait_for_status("Stopped")


def test_the_race_can_be_called_by_name(server):
    from gradio_client import Client

    client = Client(server.url, verbose=False)
    traces = client.predict("plain", ["single_token", "mtad"], {"max_new_tokens": 6}, api_name="/race")
    assert [trace["method"] for trace in traces] == ["single_token", "mtad"]
    assert traces[0]["result"]["metrics"]["tokens"] == 6
    with pytest.raises(Exception, match="The prompt is empty"):
        client.predict(" ", api_name="/race")
