"""How tokens are shown, with the real tokenizer: nothing is lost, nothing breaks, whitespace is itself."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer

from decoding.surface import readable_text, surface
from decoding.weights import locate

tokenizer = None


def setup_module() -> None:
    global tokenizer
    tokenizer = AutoTokenizer.from_pretrained(locate("SmolLM2-135M-Instruct"), local_files_only=True)


def surfaces(text: str) -> list[str]:
    return [surface(tokenizer, token) for token in tokenizer.encode(text)]


@pytest.mark.parametrize(
    "text", ["Hello world", "  two  spaces", "a\nb", "\t\ttabs", "x\r\n", "def f(x):\n    return x", "naïve café"]
)
def test_surfaces_of_plain_text_add_up_to_it(text):
    assert "".join(surfaces(text)) == text


def test_leading_spaces_newlines_and_tabs_are_kept():
    assert surfaces("The cat") == ["The", " cat"]
    assert "\n" in "".join(surfaces("\n"))
    assert "\t" in "".join(surfaces("a\tb"))


@pytest.mark.parametrize("text", ["🙂", "🎂🎉", "你好世界", "한국어", "日本語", "👩‍👩‍👧", "é", "🏳️‍🌈 ok"])
def test_fragments_of_characters_are_spelt_as_bytes(text):
    shown = surfaces(text)
    assert "\N{REPLACEMENT CHARACTER}" not in "".join(shown)
    assert joined_bytes(shown) == text.encode()


def joined_bytes(shown: list[str]) -> bytes:
    """Undo `<0xE2>`."""
    data = b""
    for part in re.split(r"(<0x[0-9A-F]{2}>)", "".join(shown)):
        data += bytes([int(part[3:5], 16)]) if re.fullmatch(r"<0x[0-9A-F]{2}>", part) else part.encode()
    return data


@given(st.text(alphabet=st.characters(blacklist_categories=["Cs", "Cc"], max_codepoint=0x1FFFF), max_size=20))
def test_bytes_of_any_text_survive(text):
    if "<0x" not in text and "<|" not in text:
        assert joined_bytes(surfaces(text)) == text.encode()


def test_special_tokens_are_shown_by_name_but_not_read():
    end = tokenizer.convert_tokens_to_ids("<|im_end|>")
    assert surface(tokenizer, end) == "<|im_end|>"
    assert readable_text(tokenizer, [*tokenizer.encode("Good bye"), end]) == "Good bye"


def test_an_id_beyond_the_tokenizer_is_shown_as_a_number():
    assert surface(tokenizer, len(tokenizer) + 5) == f"<{len(tokenizer) + 5}>"


def test_every_token_of_the_vocabulary_has_a_surface():
    for token in range(0, len(tokenizer), 7):
        shown = surface(tokenizer, token)
        assert shown
        assert "\N{REPLACEMENT CHARACTER}" not in shown
        shown.encode()


@pytest.mark.parametrize(
    "text", ["Hi , there .", "你好 🙂\n", "a\u200bb", "${7*7} <img src=x onerror=alert(1)>", "I 'm 've don 't"]
)
def test_readable_text_is_the_text(text):
    assert readable_text(tokenizer, tokenizer.encode(text)) == text


def test_readable_text_of_half_a_character_does_not_fail():
    assert readable_text(tokenizer, tokenizer.encode("🙂")[:1]) == "\N{REPLACEMENT CHARACTER}"
    assert readable_text(tokenizer, []) == ""
