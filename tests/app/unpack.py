"""Reads what the page is sent, as its script does."""

import json


def lanes_of(race: dict) -> list[dict]:
    """The lanes of packed race data, each with its tokens."""
    return [json.loads(lane["rest"]) | {"tokens": tokens_of(lane["tokens"])} for lane in race["lanes"]]


def tokens_of(lines: str) -> list[dict]:
    return [json.loads(line) for line in lines.split("\n")[:-1]]
