"""Lanes as wanted, branching, and keeping a run: link, file and report, as a person would do it."""

import json
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, expect

from decoding.trace_file import read_traces
from tests.browser.conftest import Race, Server

pytestmark = pytest.mark.browser
KEEP = "#keeping .keep-button"
SECOND_BAR = """() => {
    const plot = document.querySelector(".inspector .next .plot:not(.behind)");
    const { xaxis, yaxis } = plot._fullLayout;
    const box = plot.getBoundingClientRect();
    const x = box.left + xaxis._offset + xaxis.d2p(plot.data[0].x[1]) / 2;
    return [yaxis.ticktext[1], x, box.top + yaxis._offset + yaxis.d2p(1)];
}"""


def titles(race: Race) -> list[str]:
    return race.page.eval_on_selector_all(".lane h2", "heads => heads.map(head => head.textContent)")


def run_short(race: Race, prompt: str = "plain", tokens: int = 12) -> Race:
    race.setting("New tokens", tokens)
    race.run(prompt)
    race.wait_for_status("Finished")
    return race


def open_lanes(race: Race) -> None:
    race.page.click("#lane-settings > button")
    race.page.wait_for_selector(".lane-editor li")


def lane_field(race: Race, lane: int, label: str):
    return race.page.get_by_role("group", name=f"Lane {lane}").get_by_label(label, exact=True)


def test_lanes_are_added_changed_and_removed(race: Race):
    open_lanes(race)
    race.page.get_by_role("button", name="Remove lane 1").click()
    assert race.page.get_by_role("button", name="Remove lane 1").is_disabled()
    lane_field(race, 1, "Method").select_option("mtad")
    race.page.get_by_role("button", name="Add a lane").click()
    for lane, threshold in ((1, "0.1"), (2, "0.5"), (3, "0.9")):
        lane_field(race, lane, "τ · threshold").fill(threshold)
    run_short(race)
    assert titles(race) == [f"MTAD · threshold {value}" for value in (0.1, 0.5, 0.9)]
    assert race.page.get_by_role("button", name="Add a lane").is_enabled()
    race.page.get_by_role("button", name="Add a lane").click()
    assert race.page.get_by_role("button", name="No more than 4 lanes").is_disabled()


def test_one_method_on_two_pairs(race: Race):
    open_lanes(race)
    race.page.get_by_role("button", name="Remove lane 1").click()
    lane_field(race, 2, "Pair").select_option("gpt2-xl")
    lane_field(race, 1, "Method").select_option("mtad")
    run_short(race)
    models = race.page.eval_on_selector_all(".lane .models", "lines => lines.map(line => line.textContent)")
    assert models == ["scripted target ⟵ scripted draft", "other target ⟵ other draft"]
    assert titles(race) == ["MTAD · pair smollm2-135m", "MTAD · pair gpt2-xl"]


def test_a_pair_that_cannot_be_loaded_is_a_sentence_and_the_last_run_stays(race: Race):
    run_short(race)
    before = race.texts()
    open_lanes(race)
    race.page.get_by_label("Pair of models").click()
    race.page.locator("#pair").get_by_role("option", name="Missing pair").click()
    expect(race.page.locator(".titlebar")).to_contain_text("missing target")
    race.page.click("#run")
    assert race.wait_for_status("is not on this machine") == "'missing target' is not on this machine."
    assert race.texts() == before


def test_a_lane_that_does_not_fit_is_a_sentence(race: Race):
    open_lanes(race)
    lane_field(race, 3, "τ · threshold").fill("7")
    race.run("plain")
    assert race.wait_for_status("does not fit").startswith("Lane 3. τ · threshold: 7 does not fit.")


def test_lanes_that_begin_alike_say_so(race: Race):
    run_short(race, tokens=40)
    written = race.page.eval_on_selector_all(
        ".lane", "lanes => lanes.map(lane => [...lane.querySelectorAll('.token:not(.refused)')].map(t => t.dataset.id))"
    )
    common = race.page.eval_on_selector_all(".lane .common", "lines => lines.map(line => line.textContent)")
    for lane, ours in enumerate(written):
        lengths = [
            next((i for i, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), len(ours))
            for other, theirs in enumerate(written)
            if other != lane
        ]
        assert f"first {max(lengths)} tokens are as in" in common[lane]


def test_a_click_branches_off_a_run(race: Race):
    run_short(race)
    before = race.texts()
    race.page.locator(".lane[data-lane='2'] .token").first.click()
    choice = race.page.locator(".branches button").first
    text = choice.inner_text()
    choice.click()
    expect(race.page.locator(".lane h2").nth(3)).to_contain_text("MTAD · branch at token 1")
    race.wait_for_status("Finished: 12 tokens in 1 lane")
    assert race.texts()[:3] == before
    first = race.page.locator(".lane[data-lane='3'] .token").first
    assert first.get_attribute("class").split()[:2] == ["token", "forced"]
    assert text.replace("·", " ") == first.inner_text().replace("·", " ")
    assert "put first by the reader" in race.page.inner_text(".inspector .words")


def test_a_click_on_a_bar_branches_with_its_token(page: Page, server: Server):
    race = Race(page, server).open("?prompt=plain&top_p=1&top_k=0&max_new_tokens=12")
    race.wait_for_status("Restored from the link")
    page.click("#run")
    race.wait_for_status("Finished")
    page.locator(".lane[data-lane='0'] .token").first.click()
    page.wait_for_selector(".inspector[data-lane='0'][data-step='0']")
    page.locator(".inspector .next .plot:not(.behind)").scroll_into_view_if_needed()
    row, x, y = page.evaluate(SECOND_BAR)
    page.mouse.click(x, y)
    expect(page.locator(".lane h2").nth(3)).to_contain_text("Single-token sampling · branch at token 1")
    race.wait_for_status("Finished: 12 tokens in 1 lane")
    assert page.inner_text(".lane[data-lane='3'] .token").strip("· ") in row


def test_a_link_restores_prompt_lanes_settings_and_step(race: Race, server: Server):
    open_lanes(race)
    race.page.get_by_role("button", name="Remove lane 1").click()
    lane_field(race, 2, "τ · threshold").fill("0.25")
    race.setting("Seed", 5)
    run_short(race)
    race.page.get_by_role("button", name="Step forward").click()
    race.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    race.page.get_by_role("button", name="Copy link").click()
    expect(race.page.locator(".keeping .told")).to_contain_text("Link copied")
    link = race.page.evaluate("navigator.clipboard.readText()")
    fields = parse_qs(urlsplit(link).query)
    assert fields["prompt"] == ["plain"]
    assert fields["open"] == ["2.2"]
    written = race.texts()

    again = Race(race.page, server).open(f"?{urlsplit(link).query}")
    again.wait_for_status("Restored from the link")
    assert again.page.input_value("#prompt textarea") == "plain"
    again.page.click("#run")
    again.wait_for_status("Finished")
    assert again.texts() == written
    assert titles(again) == ["Speculative decoding", "MTAD"]
    assert again.page.inner_text(".inspector .where").startswith("step 2 of")


def test_a_link_that_does_not_fit_is_a_sentence(page: Page, server: Server):
    race = Race(page, server).open("?prompt=plain&threshold=9")
    assert "This link cannot be restored. τ · threshold: 9 does not fit" in race.wait_for_status("link")


def download(race: Race, name: str, folder: Path) -> Path:
    with race.page.expect_download() as started:
        race.page.get_by_role("link", name=name).click()
    file = folder / started.value.suggested_filename
    started.value.save_as(file)
    return file


def test_traces_are_downloaded_and_opened_again_without_a_model(race: Race, server: Server, tmp_path: Path):
    run_short(race, prompt="unicode")
    written, figures = (
        race.texts(),
        race.page.eval_on_selector_all(".figure dd", "all => all.map(one => one.textContent)"),
    )
    file = download(race, "Download traces", tmp_path)
    assert file.name == "decoding-unicode.json"
    traces = read_traces(file.read_bytes())
    assert [trace.method for trace in traces] == ["single_token", "speculative", "mtad"]

    race.page.reload()
    race.page.wait_for_selector("#run:not([disabled])")
    passes = server.passes()
    race.page.set_input_files("#open input[type=file], input[type=file]", [file])
    race.wait_for_status("Opened: 3 recorded lanes of scripted target, nothing was computed.")
    assert race.texts() == written
    assert race.page.eval_on_selector_all(".figure dd", "all => all.map(one => one.textContent)") == figures
    assert race.page.is_visible(".inspector .words")
    assert server.passes() == passes


def hostile_files(tmp_path: Path, valid: bytes) -> dict[str, bytes]:
    trace = json.loads(valid)["traces"][2]
    broken = {
        "script": trace | {"tokens": trace["tokens"] | {"<img src=x onerror=window.harmed=1>": "x"}},
        "unknown": trace | {"surprise": 1},
        "method": trace | {"method": "magic"},
        "sizes": trace | {"steps": trace["steps"] * 400},
    }
    cyclic = json.loads(json.dumps(trace))
    cyclic["steps"][0]["draft"]["nodes"][0]["parent"] = 1
    files = {name: json.dumps(data).encode() for name, data in (broken | {"cyclic": cyclic}).items()}
    files["nan"] = json.dumps(trace).replace(str(trace["steps"][0]["emitted"][0]["log_p"]), "NaN", 1).encode()
    files["junk"] = b"\x00\xff{[" * 2_500_000
    files["deep"] = b"[" * 1_000_000
    return files


def test_hostile_files_are_refused_in_a_sentence_and_change_nothing(race: Race, tmp_path: Path):
    run_short(race)
    file = download(race, "Download traces", tmp_path)
    race.page.eval_on_selector_all(".lane", "lanes => lanes.forEach(lane => { lane.mark = 1; })")
    for name, data in hostile_files(tmp_path, file.read_bytes()).items():
        path = tmp_path / f"{name}.json"
        path.write_bytes(data)
        race.page.set_input_files("#open input[type=file], input[type=file]", [path])
        said = race.wait_for_status(f"{name}.json is not a trace file" if name != "method" else "its method 'magic'")
        assert "Traceback" not in said
        assert len(said) < 700
    assert race.page.eval_on_selector_all(".lane", "lanes => lanes.every(lane => lane.mark === 1)")
    assert not race.page.evaluate("window.harmed")


def test_a_report_opens_offline(race: Race, tmp_path: Path):
    run_short(race, prompt="hazard")
    written = race.texts()
    words = race.page.inner_text(".inspector .words")
    file = download(race, "Download report", tmp_path)
    page = race.page.context.new_page()
    requests, errors = [], []
    page.on("request", lambda request: requests.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.context.set_offline(True)
    page.goto(file.as_uri())
    page.wait_for_selector(".inspector .js-plotly-plot .main-svg")
    assert Race(page, race.server).texts() == written
    assert page.inner_text(".inspector .words") == words
    assert page.inner_text(".about .prompt") == "hazard"
    page.keyboard.press("ArrowRight")
    expect(page.locator(".inspector .where")).to_contain_text("step 2 of")
    assert not page.is_visible(".branches")
    assert not page.evaluate("window.harmed")
    assert [url for url in requests if not url.startswith(("file:", "data:", "blob:"))] == []
    assert errors == []
    page.context.set_offline(False)
