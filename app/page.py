"""The page: layout and events, nothing else."""

from collections.abc import Callable, Iterator
from typing import Any

import gradio as gr

from app.examples import example_prompts
from app.inspector import NO_STEPS, look
from app.lanes import Spelling, lane_views, race_data
from app.runner import EXPLAINED, NOT_BEGUN, Request, Runner
from app.settings_form import LABELS, bounds, default, hint, read_lanes, read_settings
from decoding.lane import default_lanes
from decoding.settings import DecodingSettings

Handler = Callable[..., Any]
NOTHING: Any = gr.skip()
COMPUTE: dict[str, Any] = {"concurrency_id": "compute", "concurrency_limit": 1}  # one race at a time on this machine


def build_page(runner: Runner) -> gr.Blocks:
    """The page of a server that runs its races with `runner`."""
    with gr.Blocks(title="Decoding Explorer", analytics_enabled=False, fill_width=True) as page:
        _drawn("title", {"target": runner.models.target, "draft": runner.models.draft})
        with gr.Row(elem_id="controls", equal_height=True):
            prompt = gr.Textbox(
                label="Prompt",
                lines=3,
                max_lines=8,
                scale=5,
                elem_id="prompt",
                value=next(iter(example_prompts().values())),
            )
            with gr.Column(scale=2, min_width=260, elem_id="actions"):
                examples = gr.Dropdown(list(example_prompts()), label="Example prompts", elem_id="examples")
                with gr.Row(elem_id="buttons"):
                    run = gr.Button("Run", variant="primary", elem_id="run", min_width=100)
                    stop = gr.Button("Stop", elem_id="stop", min_width=100, interactive=False)
        with gr.Accordion("Settings", open=False, elem_id="settings"):
            form = _settings_form()
        status = _drawn(
            "status", {"kind": "ready", "text": "Ready. Type a prompt or choose an example, then press Run."}
        )
        race = _drawn("race", _empty_race())
        steps = _drawn("inspector", NO_STEPS, look=look())
        request = gr.State()

        examples.input(
            example_prompts().get, examples, prompt, queue=False, show_progress="hidden", api_visibility="private"
        )
        gr.on(
            [run.click, prompt.submit],
            _checker(runner, tuple(form)),
            [prompt, *form.values()],
            [request, status, stop],
            preprocess=False,  # bounds are checked once, by the settings themselves
            concurrency_limit=None,
            show_progress="hidden",
            trigger_mode="multiple",
            api_visibility="private",
        )
        request.change(
            _racer(runner),
            request,
            [race, steps, status, stop],
            show_progress="minimal",
            show_progress_on=status,
            trigger_mode="multiple",
            api_visibility="private",
            **COMPUTE,
        )
        stop.click(
            _stopper(runner), None, [status, stop], queue=False, show_progress="hidden", api_visibility="private"
        )
        page.unload(_leaver(runner))
        gr.api(_api(runner), api_name="race", **COMPUTE)
    return page


def _drawn(kind: str, value: Any, **props: Any) -> gr.HTML:
    """An element that the page's script draws. Its template is empty and static: what it interpolates would be executed."""
    return gr.HTML(
        value,
        html_template="<div></div>",
        js_on_load=f"decodingExplorer.{kind}(element, props, watch)",
        apply_default_css=False,
        elem_id=kind,
        **props,
    )


def _empty_race() -> dict[str, Any]:
    return race_data("", lane_views(default_lanes(DecodingSettings()), Spelling(str, frozenset())))


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
    def check(http: gr.Request, prompt: Any, *values: Any) -> tuple[Any, Any, Any]:
        try:
            settings = read_settings(dict(zip(names, values, strict=True)))
            request = runner.request(http.session_hash, prompt, default_lanes(settings))
        except EXPLAINED as error:
            return NOTHING, {"kind": "error", "text": str(error)}, NOTHING
        return request, {"kind": "busy", "text": "Waiting for the compute to be free …"}, gr.Button(interactive=True)

    return check


def _racer(runner: Runner) -> Handler:
    def follow(request: Request | None) -> Iterator[tuple[Any, Any, Any, Any]]:
        if request is None:
            return
        status = None
        for moment in runner.moments(request):
            race, steps = (NOTHING if shown is None else shown for shown in (moment.race, moment.steps))
            if moment.status == status:
                yield race, steps, NOTHING, NOTHING
            else:
                status = moment.status
                yield race, steps, status, gr.Button(interactive=moment.kind == "busy")

    return follow


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
        prompt: str, methods: list[str] | None = None, settings: dict[str, Any] | None = None
    ) -> Iterator[list[dict[str, Any] | None]]:
        """Race decoding methods on a prompt; one trace a lane, null until it is over (for good, if it broke off).

        methods: keys of one to four methods, by default single_token, speculative and mtad.
        settings: any of the decoding settings by name, for example {"seed": 1, "max_new_tokens": 32}.
        """
        try:
            request = runner.request(None, prompt, read_lanes(methods, settings or {}))
            yield from runner.traces(request)
        except EXPLAINED as error:
            raise gr.Error(str(error), print_exception=False) from error

    return race
