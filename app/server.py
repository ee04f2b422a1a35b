"""From the known pairs to a page that is served."""

from typing import Any

from app import downloads, look
from app.engine import make_engine
from app.models import Models
from app.page import build_page
from app.runner import Runner
from app.runs import Runs
from app.surroundings import ZERO_GPU
from decoding.pair import ModelPair
from decoding.presets import DEFAULT_PRESET, PRESETS
from decoding.threads import leave_a_core
from decoding.trace_file import MAX_BYTES


def default_runner() -> Runner:
    """Races on all known pairs; on ZeroGPU on the default one, since others cannot be moved to its GPU later."""
    offered = {DEFAULT_PRESET: PRESETS[DEFAULT_PRESET]} | ({} if ZERO_GPU else PRESETS)
    leave_a_core()
    models, runs = Models(offered, _load), Runs()
    return Runner(models, runs, make_engine(models, runs))


def _load(key: str) -> ModelPair:
    return ModelPair.load(PRESETS[key].target, PRESETS[key].draft, device="cuda" if ZERO_GPU else None)


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
        app_kwargs={"routes": [look.plotly_js(), *downloads.routes(runner.finished)]},
        max_file_size=MAX_BYTES,
        footer_links=["api", "gradio"],
        **options,
    )
