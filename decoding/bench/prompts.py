"""The bench's prompts: a small set of five kinds, kept in `assets/bench/prompts.json`."""

import json
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

PROMPTS = Path(__file__).parent.parent.parent / "assets" / "bench" / "prompts.json"
MAX_BYTES = 4 * 1024 * 1024
_File = TypeAdapter(dict[str, list[str]])


class BenchPrompt(BaseModel):
    """A prompt, and the kind of task it is."""

    model_config = ConfigDict(frozen=True)

    kind: str = Field(min_length=1)
    text: str = Field(min_length=1)


def read_prompts(path: Path = PROMPTS, per_kind: int | None = None) -> tuple[BenchPrompt, ...]:
    """The prompts of a JSON file of lists by kind, in its order; at most `per_kind` of each.

    Raises:
        ValueError: it is no such file, or it holds no prompt.
    """
    if path.stat().st_size > MAX_BYTES:
        raise ValueError(f"{path} is larger than {MAX_BYTES // 1024 // 1024} MB: that is no file of prompts.")
    try:
        kinds = _File.validate_python(json.loads(path.read_text(encoding="utf-8")))
        prompts = tuple(BenchPrompt(kind=kind, text=text) for kind, texts in kinds.items() for text in texts[:per_kind])
    except (ValidationError, json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(
            f"{path} is no file of prompts: it must be a JSON object of lists of texts, by kind."
        ) from error
    if not prompts:
        raise ValueError(f"{path} holds no prompt.")
    return prompts
