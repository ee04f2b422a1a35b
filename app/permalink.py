"""A race as a link: prompt, pair, settings and lanes in the address, nothing on the server."""

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from app.settings_form import InvalidSettings, read_lanes, read_settings
from decoding.lane import Lane
from decoding.presets import DEFAULT_PRESET, PRESETS
from decoding.settings import DecodingSettings

LONGEST = 6000  # characters of an address that browsers, servers and mail programs pass on whole


@dataclass(frozen=True)
class Linked:
    """What a link holds: `lanes` are written as on the command line."""

    prompt: str
    preset: str
    settings: DecodingSettings
    lanes: tuple[str, ...]


def to_query(prompt: str, lanes: Sequence[Lane]) -> str | None:
    """The query of an address that restores the race; None if it would be too long, or cannot be written as one."""
    preset, settings = lanes[0].preset, lanes[0].settings
    try:
        described = [lane.describe(settings, preset) for lane in lanes]
    except ValueError:
        return None
    fields: list[tuple[str, Any]] = [("prompt", prompt), ("pair", preset)]
    for name, value in dict(settings).items():
        if value != DecodingSettings.model_fields[name].default:
            fields += [(name, part) for part in (value if isinstance(value, tuple) else [value])]
    try:
        query = urlencode([*fields, *(("lane", text) for text in described)])
    except UnicodeEncodeError:
        return None
    return query if len(query) <= LONGEST else None


def from_query(fields: Iterable[tuple[str, str]], presets: Container[str] = PRESETS) -> Linked | None:
    """What the fields of an address hold; None if there is no prompt among them. Unknown fields are not ours.

    Raises:
        InvalidSettings: a value does not fit; the message is for the visitor.
    """
    given: dict[str, list[str]] = {}
    for name, value in fields:
        given.setdefault(name, []).append(value)
    if "prompt" not in given:
        return None
    values: dict[str, Any] = {name: given[name][-1] for name in DecodingSettings.model_fields if name in given}
    if "stop" in given:
        values["stop"] = given["stop"]
    preset = given.get("pair", [DEFAULT_PRESET])[-1]
    if preset not in presets:
        raise InvalidSettings(f"The pair '{preset[:60]}' is not offered here.")
    settings = read_settings(values)
    lanes = tuple(given.get("lane", ())) or None
    checked = read_lanes(lanes, settings, preset)
    return Linked(
        given["prompt"][-1], preset, settings, lanes or tuple(lane.describe(settings, preset) for lane in checked)
    )
