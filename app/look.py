"""How the page looks: theme, style sheet and script."""

from pathlib import Path

import gradio as gr
import plotly
from starlette.responses import FileResponse
from starlette.routing import Route

ASSETS = Path(__file__).parent.parent / "assets"
PLOTLY = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
STYLES = ("page.css", "forms.css", "inspector.css", "overview.css", "lesson.css")
SCRIPTS = (
    "race.js",
    "lane-editor.js",
    "keeping.js",
    "parts.js",
    "figures.js",
    "best-block.js",
    "inspector.js",
    "overview.js",
    "lesson.js",
)
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
    return "\n".join(asset(name) for name in STYLES)


def head() -> str:
    """The scripts that draw what is not gradio's, for the document's head; plotly.js comes when it comes."""
    return (
        f'<script>{scripts()}</script><script async id="plotly-script" src="plotly.js?v={plotly.__version__}"></script>'
    )


def scripts() -> str:
    """The scripts, as one."""
    return "\n".join(asset(name) for name in SCRIPTS)


def plotly_js() -> Route:
    """Serves the plotly.js that comes with the Python package."""
    return Route("/plotly.js", lambda _: FileResponse(PLOTLY, headers={"Cache-Control": "public, max-age=31536000"}))


def plotly_source() -> str:
    """The same as text."""
    return PLOTLY.read_text(encoding="utf-8")


def asset(name: str) -> str:
    """A text file of ours."""
    return (ASSETS / name).read_text(encoding="utf-8")
