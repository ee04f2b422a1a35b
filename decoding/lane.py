"""A lane of a race, as data: which method, on which pair, with which settings."""

from collections.abc import Sequence
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, field_validator

from decoding.methods import METHODS
from decoding.presets import DEFAULT_PRESET, PRESETS
from decoding.settings import DecodingSettings

FEWEST_LANES, MOST_LANES = 2, 4


class Lane(BaseModel):
    """What one lane runs. `preset` is a key of `PRESETS`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    method: str
    preset: str = DEFAULT_PRESET
    settings: DecodingSettings = DecodingSettings()

    @field_validator("method")
    @classmethod
    def _method_exists(cls, method: str) -> str:
        if method not in METHODS:
            raise ValueError(f"There is no method '{method[:64]}'. Methods: {', '.join(METHODS)}.")
        return method

    @field_validator("preset")
    @classmethod
    def _preset_exists(cls, preset: str) -> str:
        if preset not in PRESETS:
            raise ValueError(f"There is no pair '{preset[:64]}'. Pairs: {', '.join(PRESETS)}.")
        return preset

    @classmethod
    def parse(cls, text: str, settings: DecodingSettings, preset: str = DEFAULT_PRESET) -> Self:
        """A lane from "method,name=value,…", where the named settings replace those of `settings`.

        Raises:
            ValueError: no such method, pair or setting, or a value out of its bounds.

        >>> Lane.parse("mtad,threshold=0.1", DecodingSettings(seed=7)).settings.threshold
        0.1
        """
        method, *changes = (part.strip() for part in text.split(","))
        changed = {name.strip(): value.strip() for name, _, value in (change.partition("=") for change in changes)}
        preset = changed.pop("preset", preset)
        return cls(
            method=method, preset=preset, settings=DecodingSettings.model_validate({**dict(settings), **changed})
        )

    def describe(self, settings: DecodingSettings, preset: str = DEFAULT_PRESET) -> str:
        """The text that `parse` makes this lane of, beside the same settings and preset.

        Raises:
            ValueError: the stop strings differ; such a text cannot hold them.

        >>> Lane.parse("mtad,threshold=0.1", DecodingSettings()).describe(DecodingSettings())
        'mtad,threshold=0.1'
        """
        given, own = dict(settings), dict(self.settings)
        changes = {name: value for name, value in own.items() if value != given[name]}
        if "stop" in changes:
            raise ValueError("lanes with different stop strings cannot be written as text")
        pair = [] if self.preset == preset else [f"preset={self.preset}"]
        return ",".join([self.method, *pair, *(f"{name}={value}" for name, value in changes.items())])

    @property
    def title(self) -> str:
        """The method's title; verifying a tree makes it another method to whoever reads the title."""
        has_tree = self.method == "mtad" and self.settings.tree_verification
        return METHODS[self.method].title + (", tree" if has_tree else "")


Lanes = TypeAdapter(Annotated[tuple[Lane, ...], Field(min_length=FEWEST_LANES, max_length=MOST_LANES)])

DEFAULT_METHODS = ("single_token", "speculative", "mtad")


def default_lanes(settings: DecodingSettings, preset: str = DEFAULT_PRESET) -> tuple[Lane, ...]:
    """The three methods this project began with, on one pair with the same settings."""
    return tuple(Lane(method=method, preset=preset, settings=settings) for method in DEFAULT_METHODS)


def lane_titles(lanes: Sequence[Lane]) -> list[str]:
    """A title for each lane; lanes of one title are told apart by the settings in which they differ.

    >>> lane_titles([Lane.parse(f"mtad,threshold={t}", DecodingSettings()) for t in (0.1, 0.9)])
    ['MTAD · threshold 0.1', 'MTAD · threshold 0.9']
    """
    titles = []
    for lane in lanes:
        namesakes = [{"pair": other.preset, **dict(other.settings)} for other in lanes if other.title == lane.title]
        own = {"pair": lane.preset, **dict(lane.settings)}
        differing = [name for name in own if any(other[name] != own[name] for other in namesakes)]
        titles.append(
            " · ".join([lane.title, *(f"{name.replace('_', ' ')} {_short(own[name])}" for name in differing)])
        )
    return titles


def _short(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
