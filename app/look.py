"""How the page looks: theme, style sheet and script."""

from pathlib import Path

import gradio as gr

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
    """The style sheet."""
    return (ASSETS / "page.css").read_text(encoding="utf-8")


def head() -> str:
    """The script that draws race and status line, for the document's head."""
    return f"<script>{(ASSETS / 'race.js').read_text(encoding='utf-8')}</script>"
