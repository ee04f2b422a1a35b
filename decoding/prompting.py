"""From what a user typed to the token ids that are fed."""

from collections.abc import Sequence

from decoding.pair import ModelPair
from decoding.settings import DecodingSettings
from decoding.trace import MAX_PROMPT_TOKENS, Prompt


class InvalidPrompt(ValueError):
    """A prompt that cannot be run; the message says why and what to do."""


def prepare_prompt(pair: ModelPair, text: str, settings: DecodingSettings) -> Prompt:
    """Tokenize `text`, in the target's chat template where it has one and the settings want it.

    Raises:
        InvalidPrompt: the text is empty or not valid Unicode, or prompt, new tokens and a draft exceed the context.
    """
    if not text.strip():
        raise InvalidPrompt("The prompt is empty: type something for the models to continue.")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidPrompt(
            f"The prompt is not valid text: character {error.start + 1} is half of a surrogate pair. Delete it and type it again."
        ) from error
    token_ids = _encode(pair, text, settings)
    room = min(pair.context_length - settings.max_new_tokens - settings.draft_length, MAX_PROMPT_TOKENS)
    if len(token_ids) > room:
        raise InvalidPrompt(
            f"The prompt is too long: it has {len(token_ids):,} tokens, and with {settings.max_new_tokens} new tokens there is room "
            f"for {max(room, 0):,} in the models' context. Shorten it, or ask for fewer new tokens."
        )
    return Prompt(text=text, token_ids=tuple(token_ids))


def check_forced(pair: ModelPair, tokens: Sequence[int], settings: DecodingSettings) -> None:
    """Check the tokens that a text is to begin with.

    Raises:
        InvalidPrompt: one of them is not in the vocabulary, or they leave no room for new ones.
    """
    check_vocabulary(pair, tokens)
    if len(tokens) >= settings.max_new_tokens:
        raise InvalidPrompt(
            f"{len(tokens):,} forced tokens leave nothing to decode within {settings.max_new_tokens:,} new tokens: "
            "ask for more new tokens, or branch earlier."
        )


def check_vocabulary(pair: ModelPair, tokens: Sequence[int]) -> None:
    """Check that the target knows these tokens.

    Raises:
        InvalidPrompt: it does not know one of them.
    """
    vocabulary = pair.target.vocabulary
    if unknown := [token for token in tokens if not 0 <= token < vocabulary]:
        raise InvalidPrompt(f"There is no token {unknown[0]}: the target's vocabulary has {vocabulary:,} tokens.")


def _encode(pair: ModelPair, text: str, settings: DecodingSettings) -> list[int]:
    tokenizer = pair.target.tokenizer
    if settings.chat and tokenizer.chat_template:
        messages = [{"role": "user", "content": text}]
        return tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=True)["input_ids"]
    return tokenizer.encode(text)
