"""What all figures share: colours by role, and a template for either theme.

Figures are made in the light theme's colours; the page exchanges each for its partner when it is dark.
"""

from typing import Any

Figure = dict[str, Any]

LIGHT = {
    "ink": "#171a1f",
    "muted": "#59616b",
    "line": "#dddfe3",
    "card": "#ffffff",
    "target": "#0072b2",
    "draft": "#8a6100",
    "kept": "#00805d",
    "dropped": "#c04f00",
    "pink": "#a64d86",
    "band": "rgba(0,128,93,0.1)",
}
DARK = {
    "ink": "#e9ecef",
    "muted": "#a3adb8",
    "line": "#2d353e",
    "card": "#171c22",
    "target": "#56b4e9",
    "draft": "#f0c04a",
    "kept": "#2cc596",
    "dropped": "#ff8f45",
    "pink": "#e79ac5",
    "band": "rgba(44,197,150,0.14)",
}
SANS = "ui-sans-serif, system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif"
MONO = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'Liberation Mono', monospace"
HEIGHT = 320  # pixels
NARROWEST = 330  # pixels of a figure on a phone
NO_LABEL = " "  # plotly never labels a point again that once had no text at all


def exchange() -> dict[str, str]:
    """From each light colour to its dark partner."""
    return {colour: DARK[role] for role, colour in LIGHT.items()}


def template(colours: dict[str, str]) -> Figure:
    """Type, grid and hover labels, on a transparent ground."""
    axis = {
        "gridcolor": colours["line"],
        "linecolor": colours["line"],
        "zeroline": False,
        "ticks": "",
        "ticklabeloverflow": "allow",  # to look whether they overflow takes plotly long
        "tickfont": {"size": 11, "color": colours["muted"]},
        "title": {"font": {"size": 12, "color": colours["muted"]}, "standoff": 6},
    }
    layout = {
        "font": {"family": SANS, "size": 12, "color": colours["ink"]},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "height": HEIGHT,
        "showlegend": False,
        "hovermode": "closest",
        "hoverlabel": {
            "bgcolor": colours["card"],
            "bordercolor": colours["muted"],
            "font": {"family": SANS, "size": 12, "color": colours["ink"]},
            "align": "left",
        },
        "xaxis": axis,
        "yaxis": axis,
    }
    return {"layout": layout}


def kept_band(kept: int, **where: Any) -> list[Figure]:
    """A frame around the depths that were kept, as shapes of a layout."""
    if not kept:
        return []
    frame = {
        "type": "rect",
        "layer": "below",
        "x0": 0.5,
        "x1": kept + 0.5,
        "line": {"color": LIGHT["kept"], "width": 1.5},
        "fillcolor": LIGHT["band"],
    }
    return [frame | where]


def depth_axis(length: int, start: float = 0.5, block: str = "drafted block") -> Figure:
    """The horizontal axis of figures by depth: the same for every step of a run."""
    every = 1 if length <= 8 else 2
    return {"range": [start, length + 0.5], "tick0": 1, "dtick": every, "title": {"text": f"depth in the {block}"}}
