"""The example prompts, each under a short title."""

import json
from pathlib import Path

FILE = Path(__file__).parent.parent / "assets" / "prompts.json"


def example_prompts() -> dict[str, str]:
    """Title to prompt, in the order they are offered."""
    return {entry["title"]: entry["prompt"] for entry in json.loads(FILE.read_text(encoding="utf-8"))}
