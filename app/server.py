"""From the default pair to a page that is served."""

from functools import partial
from typing import Any

from app import look
from app.engine import make_engine
from app.models import Models
from app.page import build_page
from app.runner import Runner
from app.runs import Runs
from app.surroundings import ZERO_GPU
from decoding.pair import ModelPair
from decoding.presets import DEFAULT_PRESET, PRESETS


def default_runner() -> Runner:
    """The races of the default pair."""
    preset = PRESETS[DEFAULT_PRESET]
    device = "cuda" if ZERO_GPU else None
    load = partial(ModelPair.load, preset.target, preset.draft, device=device)
    models = Models(preset.target, preset.draft, load)
    runs = Runs()
    return Runner(models, runs, make_engine(models, runs))


def serve(runner: Runner, **options: Any) -> None:
    """Serve the page; `options` go to gradio's `launch`."""
    page = build_page(runner).queue(max_size=64)
    page.launch(
        theme=look.theme(),
        css=look.style(),
        head=look.head(),
        ssr_mode=False,
        run_history=False,
        allowed_paths=[],
        app_kwargs={"routes": [look.plotly_js()]},
        footer_links=["api", "gradio"],
        **options,
    )
