"""How tokens are shown, against a plain reading of the whole text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.tokens import show_token


def shown(surfaces: list[str]) -> list[list[tuple[str, str]]]:
    parts, waiting = [], b""
    for surface in surfaces:
        now, waiting = show_token(surface, waiting)
        parts.append(now)
    return parts


def spelt(data: bytes) -> str:
    return "".join(f"<0x{byte:02X}>" for byte in data)


@pytest.mark.parametrize(
    ("surface", "parts"),
    [
        ("sky", [("text", "sky")]),
        (" sky", [("space", " "), ("text", "sky")]),
        ("\n\n", [("newline", "\n"), ("newline", "\n")]),
        ("\tx", [("tab", "\t"), ("text", "x")]),
        ("a\u00a0b", [("text", "a"), ("hidden", "U+00A0"), ("text", "b")]),
        ("\u202e", [("hidden", "U+202E")]),
        ("\x00", [("hidden", "U+0000")]),
        ("👩\u200d🚀", [("text", "👩\u200d🚀")]),
        ("", []),
        ("${7*7}", [("text", "${7*7}")]),
        ("<img src=x>", [("text", "<img"), ("space", " "), ("text", "src=x>")]),
    ],
)
def test_one_token(surface, parts):
    assert shown([surface]) == [parts]


def test_the_token_that_completes_a_character_shows_it():
    assert shown(["<0xF0><0x9F>", "<0x98>", "<0x80>!"]) == [
        [("byte", "F0"), ("byte", "9F")],
        [("byte", "98")],
        [("text", "😀!")],
    ]


def test_bytes_that_wait_in_vain_are_shown_once():
    assert shown(["<0xE6><0x97>", "sky"]) == [[("byte", "E6"), ("byte", "97")], [("text", "sky")]]


def test_bytes_that_can_never_be_a_character_are_shown():
    assert shown(["a<0xFF>", "<0x80>b"]) == [[("text", "a"), ("byte", "FF")], [("byte", "80"), ("text", "b")]]


def test_text_and_bytes_in_one_token():
    assert shown([" <0xE5><0xA4>", "<0xA9>"]) == [[("space", " "), ("byte", "E5"), ("byte", "A4")], [("text", "天")]]


@given(st.text(alphabet=st.characters(categories=["L", "N", "P", "So"]), max_size=8), st.integers(1, 5))
def test_however_a_text_is_cut_its_characters_appear(text, size):
    data = text.encode()
    pieces = [data[i : i + size] for i in range(0, len(data), size)]
    parts = [part for token in shown([spelt(piece) for piece in pieces]) for part in token]
    assert "".join(part for kind, part in parts if kind == "text") == text


@given(st.binary(max_size=12), st.integers(1, 4))
def test_every_token_shows_something(data, size):
    pieces = [data[i : i + size] for i in range(0, len(data), size)]
    assert all(shown([spelt(piece) for piece in pieces]))
