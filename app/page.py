"""The page: layout and events, nothing else."""

import json
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any
from urllib.parse import urlencode

import gradio as gr

from app.best_block import NO_ANSWER, Searches
from app.examples import examples, read_name, recording, run_id
from app.explained import EXPLAINED
from app.inspector import NO_STEPS, look
from app.lane_editor import default_text, editor, read_text, to_text
from app.lanes import empty_race
from app.lesson import lesson_text
from app.opening import NOT_WHILE_RACING, open_files, opened_sentence
from app.overview import NO_OVERVIEW
from app.permalink import from_query
from app.requests import Request, read_place
from app.runner import NOT_BEGUN, Runner
from app.settings_form import LABELS, bounds, default, hint, read_lanes, read_settings
from app.shown import Shown, show
from decoding.lane import default_lanes
from decoding.presets import Preset
from decoding.settings import DecodingSettings

Handler = Callable[..., Any]
NOTHING: Any = gr.skip()
DAILY = (24 * 3600, 24 * 3600)  # uploads are looked through, and old ones removed
RESTORED = {
    "kind": "ready",
    "text": "Restored from the link. Press Run to decode it: the same seed gives the same run.",
}
QUIET: dict[str, Any] = {"queue": False, "show_progress": "hidden", "api_visibility": "private"}
QUEUED: dict[str, Any] = {"show_progress": "hidden", "trigger_mode": "multiple", "api_visibility": "private"}
CHECK: dict[str, Any] = QUEUED | {
    "concurrency_limit": None
}  # never waited for: in the queue changed states are noticed
COMPUTE: dict[str, Any] = {"concurrency_id": "compute", "concurrency_limit": 1}  # one race at a time on this machine


def build_page(runner: Runner) -> gr.Blocks:
    """The page of a server that runs its races with `runner`."""
    presets = runner.models.presets
    empty = empty_race(default_lanes(DecodingSettings()))
    with gr.Blocks(title="Decoding Explorer", analytics_enabled=False, fill_width=True, delete_cache=DAILY) as page:
        title = _drawn("title", _pair_data(presets[runner.models.default]))
        lesson = _drawn("lesson", lesson_text())
        with gr.Row(elem_id="controls", equal_height=True):
            prompt = gr.Textbox(
                label="Prompt",
                lines=3,
                max_lines=8,
                scale=5,
                elem_id="prompt",
                value=next(iter(examples().values())).prompt,
            )
            with gr.Column(scale=2, min_width=260, elem_id="actions"):
                names = [(planned.title, name) for name, planned in examples().items()]
                example = gr.Dropdown(names, label="Examples, recorded", elem_id="examples")
                with gr.Row(elem_id="buttons"):
                    run = gr.Button("Run", variant="primary", elem_id="run", min_width=100)
                    stop = gr.Button("Stop", elem_id="stop", min_width=100, interactive=False)
        with gr.Accordion("Settings", open=False, elem_id="settings"):
            form = _settings_form()
        with gr.Accordion("Lanes and models", open=False, elem_id="lane-settings"):
            titles = [(preset.title, key) for key, preset in presets.items()]
            pair = gr.Dropdown(titles, label="Pair of models", value=runner.models.default, elem_id="pair")
            lanes = _drawn("laneEditor", default_text(), editor(presets))
        status = _drawn(
            "status", {"kind": "ready", "text": "Ready. Type a prompt or choose an example, then press Run."}
        )
        race = _drawn("race", empty)
        with gr.Row(elem_id="keep"):
            keeping = _drawn("keeping", {"run": "", "query": None, "kept": False})
            files = gr.UploadButton(
                "Open traces", file_count="multiple", file_types=[".json"], size="sm", elem_id="open", scale=0
            )
        steps = _drawn("inspector", NO_STEPS, look())
        answer = _drawn("bestBlock", NO_ANSWER)  # shown by the inspector
        overview = _drawn("overview", NO_OVERVIEW, look())
        request = gr.State()
        shown = [race, steps, overview, keeping]

        show_recording = _recordings(runner)
        show_recording(next(iter(examples())))  # the first visitor is not to wait until it is put together
        example.input(
            _chooser(runner, show_recording, tuple(form)), example, [*shown, status, prompt, *form.values()], **QUIET
        )
        pair.change(lambda key: _pair_data(presets[key]), pair, title, **QUIET)
        gr.on(
            [run.click, prompt.submit],
            _checker(runner, tuple(form)),
            [prompt, pair, lanes, *form.values()],
            [request, status, stop],
            preprocess=False,  # bounds are checked once, by the settings themselves
            **CHECK,
        )
        steps.select(_brancher(runner), None, [request, status, stop], **CHECK)
        steps.submit(_searcher(Searches(runner.models, runner.shelf)), None, answer, **QUEUED, **COMPUTE)
        request.change(
            _racer(runner),
            request,
            [*shown, status, stop],
            **(QUEUED | {"show_progress": "minimal", "show_progress_on": status}),
            **COMPUTE,
        )
        stop.click(_stopper(runner), None, [status, stop], **QUIET)
        files.upload(_opener(runner), files, [*shown, status], **QUIET)
        lesson.select(_teacher(runner, show_recording), None, [*shown, status], **QUIET)
        page.load(
            _restorer(runner, show_recording, tuple(form)),
            None,
            [*shown, status, prompt, pair, lanes, *form.values()],
            **QUIET,
        )
        page.unload(_leaver(runner))
        gr.api(_api(runner), api_name="race", **COMPUTE)
    return page


def _drawn(kind: str, value: Any, given: Any = None) -> gr.HTML:
    """An element that the page's script draws, with what it is given once and for all.

    Its template is empty and static: what it interpolates would be executed. What is given becomes part of a script, so it
    must be our own. (Props do not reach elements that are first shown later.)
    """
    return gr.HTML(
        value,
        html_template="<div></div>",
        js_on_load=f"decodingExplorer.{kind}(element, props, watch, trigger, {json.dumps(given)})",
        apply_default_css=False,
        elem_id=kind,
    )


def _pair_data(preset: Preset) -> dict[str, Any]:
    return {
        "target": preset.target,
        "draft": preset.draft,
        "remark": f"{preset.licence} · {preset.memory_gb:g} GB in half precision",
    }


def _settings_form() -> dict[str, gr.components.Component]:
    with gr.Row():
        form: dict[str, gr.components.Component] = {
            "draft_length": _slider("draft_length", 1),
            "beam_width": _slider("beam_width", 1),
            "threshold": _slider("threshold", 0.01),
            "draft_search": gr.Radio(["sampling", "search"], value=default("draft_search"), **_words("draft_search")),
        }
    with gr.Row():
        form |= {
            "tree_verification": gr.Checkbox(default("tree_verification"), **_words("tree_verification")),
            "best_blocks": _slider("best_blocks", 1),
            "search_budget": _slider("search_budget", 1),
        }
    with gr.Row():
        form |= {
            "temperature": _slider("temperature", 0.05),
            "top_k": _slider("top_k", 1),
            "top_p": _slider("top_p", 0.01),
            "max_new_tokens": _slider("max_new_tokens", 1),
        }
    with gr.Row():
        form |= {
            "seed": gr.Number(default("seed"), precision=0, **_words("seed")),
            "stop": gr.Textbox(lines=1, max_lines=8, placeholder="one per line", **_words("stop")),
            "chat": gr.Checkbox(default("chat"), **_words("chat")),
        }
    return form


def _slider(name: str, step: float) -> gr.Slider:
    limits = bounds(name, step)
    return gr.Slider(limits.least, limits.most, default(name), step=step, buttons=[], **_words(name))


def _words(name: str) -> dict[str, Any]:
    return {"label": LABELS[name], "info": hint(name), "min_width": 200}


def _checker(runner: Runner, names: tuple[str, ...]) -> Handler:
    def check(http: gr.Request, prompt: Any, pair: Any, lanes: Any, *values: Any) -> tuple[Any, Any, Any]:
        try:
            settings = read_settings(dict(zip(names, values, strict=True)))
            return _waiting(runner.request(http.session_hash, prompt, read_text(lanes, settings, str(pair))))
        except EXPLAINED as error:
            return _refused(error)

    return check


def _brancher(runner: Runner) -> Handler:
    def branch(http: gr.Request, event: gr.EventData) -> tuple[Any, Any, Any]:
        try:
            return _waiting(runner.branch(http.session_hash, *read_place(event._data)))
        except EXPLAINED as error:
            return _refused(error)

    return branch


def _searcher(searches: Searches) -> Handler:
    def search(event: gr.EventData) -> Iterator[Any]:
        yield from searches.answers(event._data)

    return search


def _waiting(request: Request) -> tuple[Any, Any, Any]:
    return request, {"kind": "busy", "text": "Waiting for the compute to be free …"}, gr.Button(interactive=True)


def _refused(error: Exception) -> tuple[Any, Any, Any]:
    return NOTHING, {"kind": "error", "text": str(error)}, NOTHING


def _racer(runner: Runner) -> Handler:
    def follow(request: Request | None) -> Iterator[tuple[Any, ...]]:
        if request is None:
            return
        status = None
        for moment in runner.moments(request):
            shown = [NOTHING if part is None else part for part in moment.parts]
            if moment.status == status:
                yield *shown, NOTHING, NOTHING
            else:
                status = moment.status
                yield *shown, status, gr.Button(interactive=moment.kind == "busy")

    return follow


def _opener(runner: Runner) -> Handler:
    def open_traces(http: gr.Request, files: list[str] | None) -> tuple[Any, ...]:
        if runner.runs.is_busy(http.session_hash or ""):
            return *[NOTHING] * 4, {"kind": "error", "text": NOT_WHILE_RACING}
        try:
            run, traces = open_files(files or [])
            opened = show(run, traces, runner.models.presets)
        except EXPLAINED as error:
            return *[NOTHING] * 4, {"kind": "error", "text": str(error)}
        runner.shelf.put(run, traces)
        return *opened.parts, {"kind": "done", "text": opened_sentence(traces)}

    return open_traces


def _recordings(runner: Runner) -> Callable[[str], tuple[Any, ...]]:
    """From an example's name to what the page shows of its recorded run, status line included."""

    @cache
    def shown(name: str) -> Shown:
        found = recording(name)
        place = f"{found.place.lane + 1}.{found.place.step + 1}"
        return show(run_id(name), found.traces, runner.models.presets, urlencode({"example": name}), place)

    def show_recording(name: str) -> tuple[Any, ...]:
        found = recording(name)
        runner.shelf.put(run_id(name), found.traces)
        return *shown(name).parts, {"kind": "done", "text": f"Recorded. {found.look_at}"}

    return show_recording


def _teacher(runner: Runner, show_recording: Callable[[str], tuple[Any, ...]]) -> Handler:
    def teach(http: gr.Request, event: gr.EventData) -> tuple[Any, ...]:
        if runner.runs.is_busy(http.session_hash or ""):
            return *[NOTHING] * 4, {"kind": "error", "text": NOT_WHILE_RACING}
        try:
            return show_recording(read_name(event._data))
        except EXPLAINED as error:
            return *[NOTHING] * 4, {"kind": "error", "text": str(error)}

    return teach


def _chooser(runner: Runner, show_recording: Callable[[str], tuple[Any, ...]], names: tuple[str, ...]) -> Handler:
    """An example's prompt and settings and, unless a race is going on, its recorded run."""

    def choose(http: gr.Request, name: str) -> tuple[Any, ...]:
        example = examples()[name]
        shown = (NOTHING,) * 5 if runner.runs.is_busy(http.session_hash or "") else show_recording(name)
        return *shown, example.prompt, *_form_values(example.settings, names)

    return choose


def _restorer(runner: Runner, show_recording: Callable[[str], tuple[Any, ...]], names: tuple[str, ...]) -> Handler:
    """What an address asks for: a race, a recorded example, or (an empty one) nothing; without any, the first example."""

    def restore(http: gr.Request) -> tuple[Any, ...]:
        nothing = (NOTHING,) * 4
        form = (NOTHING,) * len(names)
        fields = http.query_params.multi_items()
        try:
            linked = from_query(fields, runner.models.presets)
            if linked:
                values = _form_values(linked.settings, names)
                return *nothing, RESTORED, linked.prompt, linked.preset, to_text(linked.lanes), *values
            name = dict(fields).get("example", next(iter(examples())))
            if not name:
                return *nothing, NOTHING, NOTHING, NOTHING, NOTHING, *form
            example = examples()[read_name({"example": name})]
            values = _form_values(example.settings, names)
            return *show_recording(name), example.prompt, NOTHING, NOTHING, *values
        except EXPLAINED as error:
            sentence = {"kind": "error", "text": f"This link cannot be restored. {error}"}
            return *nothing, sentence, NOTHING, NOTHING, NOTHING, *form

    return restore


def _form_values(settings: DecodingSettings, names: tuple[str, ...]) -> list[Any]:
    values = dict(settings) | {"stop": "\n".join(settings.stop)}
    return [values[name] for name in names]


def _stopper(runner: Runner) -> Handler:
    def stop(http: gr.Request) -> tuple[Any, Any]:
        if runner.runs.stop(http.session_hash or ""):
            return {"kind": "done", "text": NOT_BEGUN}, gr.Button(interactive=False)
        return NOTHING, NOTHING  # the race itself says how it ended

    return stop


def _leaver(runner: Runner) -> Handler:
    def leave(http: gr.Request) -> None:
        runner.runs.leave(http.session_hash or "")

    return leave


def _api(runner: Runner) -> Handler:
    def race(
        prompt: str, lanes: list[str] | None = None, settings: dict[str, Any] | None = None
    ) -> Iterator[list[dict[str, Any] | None]]:
        """Race decoding methods on a prompt; one trace a lane, null until it is over (for good, if it broke off).

        lanes: two to four, each a method and what it has of its own, such as "mtad" or "mtad,threshold=0.1,preset=gpt2-xl";
            by default single_token, speculative and mtad.
        settings: any of the decoding settings by name, for example {"seed": 1, "max_new_tokens": 32}.
        """
        try:
            request = runner.request(None, prompt, read_lanes(lanes, read_settings(settings or {})))
            yield from runner.traces(request)
        except EXPLAINED as error:
            raise gr.Error(str(error), print_exception=False) from error

    return race
