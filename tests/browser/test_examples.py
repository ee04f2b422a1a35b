"""Recorded examples: on the page before any model is needed, and steppable."""

import pytest
from playwright.sync_api import Page, expect

from app.examples import examples, recording
from tests.browser.conftest import Race, Server

pytestmark = pytest.mark.browser
FIRST, SECOND = list(examples())[:2]


def texts_of(name: str) -> list[str]:
    return [trace.result.text for trace in recording(name).traces]


def wait_for_recording(race: Race, name: str) -> None:
    race.page.wait_for_selector(f".lanes[data-run='example-{name}']")
    race.page.wait_for_selector(".inspector .words:not(:empty)")


def plain(text: str) -> str:
    return "".join(text.split())


def test_a_recorded_run_is_there_when_the_page_opens(page: Page, server: Server):
    passes = server.passes()
    race = Race(page, server).open("")
    wait_for_recording(race, FIRST)
    place = recording(FIRST).place
    lane = recording(FIRST).traces[place.lane]
    assert page.inner_text(".inspector .where") == f"step {place.step + 1} of {len(lane.steps)}"
    assert race.status() == f"Recorded. {recording(FIRST).look_at}"
    assert page.input_value("#prompt textarea") == examples()[FIRST].prompt
    assert [plain(text) for text in texts_of(FIRST)] == [plain(text.replace("<|im_end|>", "")) for text in race.texts()]
    page.keyboard.press("ArrowRight")
    expect(page.locator(".inspector .where")).to_have_text(f"step {place.step + 2} of {len(lane.steps)}")
    assert server.passes() == passes
    assert race.errors == []


def test_another_example_brings_its_prompt_settings_and_run(page: Page, server: Server):
    race = Race(page, server).open("")
    wait_for_recording(race, FIRST)
    page.get_by_label("Examples, recorded").click()
    page.locator("#examples").get_by_role("option", name=examples()[SECOND].title).click()
    wait_for_recording(race, SECOND)
    assert page.input_value("#prompt textarea") == examples()[SECOND].prompt
    page.click("#settings > button")
    tokens = page.locator("#settings").get_by_role("spinbutton", name="New tokens")
    expect(tokens).to_have_value(str(examples()[SECOND].settings.max_new_tokens))


def test_a_link_opens_an_example_at_a_step(page: Page, server: Server):
    race = Race(page, server).open(f"?example={SECOND}&open=2.3")
    wait_for_recording(race, SECOND)
    expect(page.locator(".inspector .where")).to_contain_text("step 3 of")
    expect(page.locator(".inspector .chooser [aria-pressed=true]")).to_have_text("Speculative decoding")


def test_a_link_to_no_example_is_a_sentence(page: Page, server: Server):
    race = Race(page, server).open("?example=nothing")
    assert race.wait_for_status("link") == "This link cannot be restored. There is no such example."


def test_a_race_replaces_the_recording(page: Page, server: Server):
    race = Race(page, server).open("")
    wait_for_recording(race, FIRST)
    race.setting("New tokens", 12)
    race.run("plain")
    race.wait_for_status("Finished: 36 tokens in 3 lanes")
    assert race.texts()[0].startswith(" the sky is")
