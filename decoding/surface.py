"""The surface form of tokens: what a person is shown for an id, rendering kept apart from the data."""

import re
from collections.abc import Sequence

from transformers import PreTrainedTokenizerBase
from transformers.convert_slow_tokenizer import bytes_to_unicode

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
BYTE_OF_LETTER = {letter: byte for byte, letter in bytes_to_unicode().items()}
SENTENCEPIECE_BYTE = re.compile(r"<0x([0-9A-F]{2})>")


def surface(tokenizer: PreTrainedTokenizerBase, token: int) -> str:
    """The text of one token, its leading space included; bytes that are no whole character as `<0xE2><0x96>`."""
    piece = tokenizer.convert_ids_to_tokens(token)
    if piece is None:
        return f"<{token}>"  # an id of the head that the tokenizer has no name for
    if SENTENCEPIECE_BYTE.fullmatch(piece) or token in tokenizer.all_special_ids:
        return piece
    text = str(tokenizer.decode([token], skip_special_tokens=False, clean_up_tokenization_spaces=False))
    if REPLACEMENT in text and all(letter in BYTE_OF_LETTER for letter in piece):
        return _show_bytes(bytes(BYTE_OF_LETTER[letter] for letter in piece))
    if piece.startswith("▁") and not text.startswith(" "):
        return " " + text
    return text


def _show_bytes(data: bytes) -> str:
    """Whole characters as they are, every other byte spelt out."""
    return re.sub(
        r"[\udc80-\udcff]", lambda byte: f"<0x{ord(byte[0]) - 0xDC00:02X}>", data.decode("utf-8", "surrogateescape")
    )


def readable_text(tokenizer: PreTrainedTokenizerBase, tokens: Sequence[int]) -> str:
    """The tokens' joint text, without special tokens."""
    return str(tokenizer.decode(list(tokens), skip_special_tokens=True, clean_up_tokenization_spaces=False))
