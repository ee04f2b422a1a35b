"""The settings as a form: what each field is called, its bounds, and one sentence for what does not fit."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from decoding.lane import FEWEST_LANES, MOST_LANES, Lane, default_lanes
from decoding.presets import DEFAULT_PRESET
from decoding.settings import DecodingSettings

LABELS = {
    "draft_length": "γ · draft length",
    "beam_width": "b · draft beams",
    "threshold": "τ · threshold",
    "draft_search": "Draft search",
    "tree_verification": "Tree verification",
    "best_blocks": "m · best blocks",
    "search_budget": "Search budget",
    "temperature": "Temperature",
    "top_k": "Top-k",
    "top_p": "Top-p",
    "max_new_tokens": "New tokens",
    "seed": "Seed",
    "stop": "Stop strings",
    "chat": "Chat template",
}


class InvalidSettings(ValueError):
    """Settings that cannot be used; the message says which and why."""


@dataclass(frozen=True)
class Bounds:
    """Least and greatest value of a number, both included."""

    least: float
    most: float


def bounds(name: str, step: float = 1) -> Bounds:
    """The bounds of a setting; one that is open at the bottom starts a step above it."""
    limits = {key: value for part in DecodingSettings.model_fields[name].metadata for key, value in _limits(part)}
    least = limits["gt"] + step if "gt" in limits else limits["ge"]
    most = limits["lt"] - step if "lt" in limits else limits["le"]
    return Bounds(least, most)


def _limits(part: Any) -> list[tuple[str, float]]:
    return [(key, getattr(part, key)) for key in ("ge", "gt", "le", "lt") if getattr(part, key, None) is not None]


def default(name: str) -> Any:
    """The default of a setting."""
    return DecodingSettings.model_fields[name].default


def hint(name: str) -> str:
    """What a setting means, without the sign that is in its label already."""
    return re.sub(r"^\S, ", "", DecodingSettings.model_fields[name].description or "")


def read_settings(values: Mapping[str, Any]) -> DecodingSettings:
    """The settings that a form holds. `stop` may be a text with one stop string a line.

    Raises:
        InvalidSettings: a value is missing, of the wrong kind or out of bounds.
    """
    given = dict(values)
    if isinstance(given.get("stop", []), str | None):  # an untouched text field holds None
        given["stop"] = [line for line in (given["stop"] or "").splitlines() if line]
    try:
        return DecodingSettings(**given)
    except ValidationError as error:
        raise InvalidSettings(_sentence(error)) from error


def read_lanes(
    described: Sequence[str] | None, settings: DecodingSettings, preset: str = DEFAULT_PRESET
) -> tuple[Lane, ...]:
    """Lanes from texts such as "mtad" or "mtad,threshold=0.1", by default the three of the page.

    Args:
        settings, preset: of all lanes, but for what a lane's text says.

    Raises:
        InvalidSettings: no such method, pair or setting, too few or too many lanes, or a value that does not fit.
    """
    if described is None:
        return default_lanes(settings, preset)
    if not FEWEST_LANES <= len(described) <= MOST_LANES:
        raise InvalidSettings(f"A race has {FEWEST_LANES} to {MOST_LANES} lanes, not {len(described)}.")
    return tuple(_read_lane(number, text, settings, preset) for number, text in enumerate(described, start=1))


def _read_lane(number: int, text: str, settings: DecodingSettings, preset: str) -> Lane:
    if not isinstance(text, str):
        raise InvalidSettings(f"Lane {number} is not a text such as mtad,threshold=0.1.")
    try:
        return Lane.parse(text, settings, preset)
    except ValidationError as error:
        raise InvalidSettings(f"Lane {number}. {_sentence(error)}") from error


def _sentence(error: ValidationError) -> str:
    """About the first field that does not fit."""
    first = error.errors(include_url=False)[0]
    if first["type"] == "value_error":
        return str(first["ctx"]["error"])  # a sentence of ours
    name, value = str(first["loc"][0]), first["input"]
    label = LABELS.get(name)
    if label is None:
        return f"There is no setting named '{name[:60]}'."
    if value is None or value == "":
        return f"{label}: a value is missing."
    return f"{label}: {str(value)[:40]} does not fit. {first['msg'].replace('Input should', 'It should')}."
