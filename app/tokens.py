"""How a token is shown: every space, byte and special token visible, every character whole once it is complete.

A token's surface (see `decoding.surface`) becomes *parts*, pairs of a kind and a text:

    >>> show_token(" sky", b"")
    ([('space', ' '), ('text', 'sky')], b'')
    >>> show_token("<0xF0><0x9F><0x98>", b"")
    ([('byte', 'F0'), ('byte', '9F'), ('byte', '98')], b'\\xf0\\x9f\\x98')
    >>> show_token("<0x80>", b"\\xf0\\x9f\\x98")
    ([('text', '😀')], b'')
"""

import re
import unicodedata
from codecs import getincrementaldecoder
from typing import Literal

Kind = Literal["text", "space", "newline", "tab", "byte", "hidden", "special"]
Part = tuple[Kind, str]

SPELT_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
KIND_OF_BLANK: dict[str, Kind] = {" ": "space", "\n": "newline", "\t": "tab"}
JOINERS = {"\N{ZERO WIDTH JOINER}", "\N{ZERO WIDTH NON-JOINER}"}  # they shape their neighbours, and must reach the font


def show_token(surface: str, pending: bytes) -> tuple[list[Part], bytes]:
    """The parts of a token, and the bytes after it that still wait for the rest of their character.

    Bytes that wait are shown as they come; the token that completes the character shows the character.

    Args:
        pending: what the token before left waiting.
    """
    own = _bytes(surface)
    text, waiting = _decode(pending + own)
    parts = _split(_without_leading_escapes(text, most=len(pending)))
    new = waiting[max(0, len(waiting) - len(own)) :]
    return parts + [("byte", f"{byte:02X}") for byte in new], waiting


def _bytes(surface: str) -> bytes:
    pieces = SPELT_BYTE.split(surface)  # text and spelt bytes take turns
    return b"".join(bytes.fromhex(piece) if i % 2 else piece.encode() for i, piece in enumerate(pieces))


def _decode(data: bytes) -> tuple[str, bytes]:
    """The characters that are complete, bytes that can never be part of one as escapes, and the bytes that still may."""
    decoder = getincrementaldecoder("utf-8")("surrogateescape")
    text = decoder.decode(data)
    return text, decoder.getstate()[0]


def _without_leading_escapes(text: str, most: int) -> str:
    """Drop the bytes that were waiting in vain: they have been shown already."""
    escapes = len(text) - len(text.lstrip("".join(map(chr, range(0xDC80, 0xDD00)))))
    return text[min(escapes, most) :]


def _split(text: str) -> list[Part]:
    parts: list[Part] = []
    for character in text:
        kind, shown = _classify(character)
        if kind == "text" and parts and parts[-1][0] == "text":
            parts[-1] = ("text", parts[-1][1] + shown)
        else:
            parts.append((kind, shown))
    return parts


def _classify(character: str) -> Part:
    if character in KIND_OF_BLANK:
        return KIND_OF_BLANK[character], character
    if "\udc80" <= character <= "\udcff":
        return "byte", f"{ord(character) - 0xDC00:02X}"
    if unicodedata.category(character) in {"Cc", "Cf", "Zs", "Zl", "Zp"} and character not in JOINERS:
        return "hidden", f"U+{ord(character):04X}"
    return "text", character
