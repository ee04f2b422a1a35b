"""How the page looks: theme, style sheet and script."""

from pathlib import Path

import gradio as gr
import plotly
from starlette.responses import FileResponse
from starlette.routing import Route

ASSETS = Path(__file__).parent.parent / "assets"
SANS = ("ui-sans-serif", "system-ui", "-apple-system", "Segoe UI", "Roboto", "Noto Sans", "sans-serif")
MONO = ("ui-monospace", "SFMono-Regular", "Menlo", "Consolas", "Liberation Mono", "monospace")


def theme() -> gr.themes.Base:
    """Plain and quiet, with system fonts: nothing is fetched from elsewhere."""
    return gr.themes.Base(
        primary_hue=gr.themes.colors.blue,
        neutral_hue=gr.themes.colors.slate,
        font=SANS,
        font_mono=MONO,
        radius_size=gr.themes.sizes.radius_md,
    )


def style() -> str:
    """The style sheets, as one."""
    return "\n".join(_asset(name) for name in ("page.css", "inspector.css"))


def head() -> str:
    """The scripts that draw what is not gradio's, for the document's head; plotly.js comes when it comes."""
    scripts = "\n".join(_asset(name) for name in ("race.js", "figures.js", "inspector.js"))
    return (
        f'<script>{scripts}</script><script async id="plotly-script" src="plotly.js?v={plotly.__version__}"></script>'
    )


def plotly_js() -> Route:
    """Serves the plotly.js that comes with the Python package."""
    file = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
    return Route("/plotly.js", lambda _: FileResponse(file, headers={"Cache-Control": "public, max-age=31536000"}))


def _asset(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")
