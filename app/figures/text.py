"""Text in figures: plotly reads a little HTML in it, and labels have only so much room."""

import unicodedata
from collections.abc import Callable
from html import escape
from math import exp, inf

from app.tokens import Part

Spell = Callable[[int], str]  # from a token's id to one line of text that shows every space and byte

SIGNS = {"space": "·", "newline": "↵", "tab": "⇥"}
SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
MOST_COLUMNS = 60  # of a token that is shown whole
ISOLATE, END_ISOLATE = "\N{FIRST STRONG ISOLATE}", "\N{POP DIRECTIONAL ISOLATE}"


def one_line(parts: list[Part]) -> str:
    """A token's parts as one line.

    >>> one_line([("space", " "), ("text", "sky"), ("newline", "\\n"), ("byte", "F0")])
    '·sky↵‹F0›'
    """
    return "".join(SIGNS.get(kind, f"‹{text}›" if kind in {"byte", "hidden"} else text) for kind, text in parts)


def plain(text: str) -> str:
    """Text that plotly shows as it is, and whose direction stays its own affair.

    >>> plain("<b>")[1:-1]
    '&lt;b&gt;'
    """
    return ISOLATE + escape(text, quote=False) + END_ISOLATE


def label(text: str, columns: int) -> str:
    """Text that plotly shows as it is, cut to so many columns."""
    return plain(shorten(text, columns))


def shorten(text: str, columns: int = MOST_COLUMNS) -> str:
    """Text of at most so many columns; wide characters take two.

    >>> shorten("probability", 5), shorten("天空是蓝的", 5), shorten("sky", 5)
    ('prob…', '天空…', 'sky')
    """
    widths = [_columns(character) for character in text]
    if sum(widths) <= columns:
        return text
    kept, room = "", columns - 1
    for character, width in zip(text, widths, strict=True):
        room -= width
        if room < 0:
            break
        kept += character
    return kept + "…"


def number(value: float, digits: int = 3) -> str:
    """A figure as people write it.

    >>> number(0.6217), number(0), number(0.000012), number(51234.0), number(inf)
    ('0.622', '0', '1.2·10⁻⁵', '5.12·10⁴', '∞')
    """
    if value == inf:
        return "∞"
    mantissa, _, exponent = f"{value:.{digits}g}".partition("e")
    return f"{mantissa}·10{str(int(exponent)).translate(SUPERSCRIPT)}" if exponent else mantissa


def probability(log_probability: float) -> str:
    """exp of a log-probability, written out."""
    return number(exp(log_probability))


def ratio(log_p: float, log_q: float) -> float:
    """p/q; ∞ where it is beyond a float."""
    difference = log_p - log_q
    return exp(difference) if difference < 700 else inf


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
