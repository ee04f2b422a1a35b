"""The lanes as a visitor wants them: what the editor on the page offers, and how its text is read."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, get_args

from app.settings_form import LABELS, InvalidSettings, read_lanes
from decoding.lane import DEFAULT_METHODS, FEWEST_LANES, MOST_LANES, Lane
from decoding.methods import METHODS
from decoding.presets import Preset
from decoding.settings import DecodingSettings

COMMON = ("temperature", "top_k", "top_p", "max_new_tokens", "seed")  # settings that every method reads


def editor(presets: Mapping[str, Preset]) -> dict[str, Any]:
    """What the editor offers: methods and what they read, pairs, and the settings that a lane may have of its own."""
    special = dict.fromkeys(name for method in METHODS.values() for name in method.uses)
    return {
        "methods": {key: {"title": method.title, "uses": [*method.uses, *COMMON]} for key, method in METHODS.items()},
        "pairs": {key: preset.title for key, preset in presets.items()},
        "fields": [_field(name) for name in (*COMMON, *special)],
        "fewest": FEWEST_LANES,
        "most": MOST_LANES,
    }


def default_text() -> str:
    """The lanes that the page begins with."""
    return to_text(DEFAULT_METHODS)


def to_text(described: Iterable[str]) -> str:
    """Lanes, each written as on the command line, as the editor's text."""
    return json.dumps(list(described))


def read_text(text: Any, settings: DecodingSettings, preset: str) -> tuple[Lane, ...]:
    """The lanes of the editor's text; its pair and settings hold where a lane has none of its own.

    Raises:
        InvalidSettings: it is no list of lanes, or one of them does not fit.
    """
    try:
        described = json.loads(text)
    except (TypeError, ValueError):
        described = None
    if not isinstance(described, list):
        raise InvalidSettings("The lanes cannot be read: reload the page.")
    return read_lanes(described, settings, preset)


def _field(name: str) -> dict[str, Any]:
    """`choices` where there is a choice between words; otherwise it is a number."""
    annotation = DecodingSettings.model_fields[name].annotation
    choices = ["True", "False"] if annotation is bool else list(get_args(annotation))
    return {"name": name, "label": LABELS[name], "choices": choices, "whole": annotation is int}
