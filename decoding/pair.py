"""ModelPair: a target and a draft that speak the same tokens."""

from dataclasses import dataclass, replace

from transformers import PreTrainedTokenizerBase

from decoding.language_model import LanguageModel

PROBE = "The year 2025, Ünïcode 你好 🙂,\n\tdef f(x):  return x**2 <|im_end|>"


class VocabularyMismatch(Exception):
    """Draft and target do not share a tokenizer; the message says how they differ."""


@dataclass(frozen=True)
class ModelPair:
    """A target and, for the methods that need one, a draft. Both have the same tokenizer and vocabulary size."""

    target: LanguageModel
    draft: LanguageModel | None = None

    @classmethod
    def of(cls, target: LanguageModel, draft: LanguageModel | None) -> "ModelPair":
        """Join two models, with padded heads cut to the vocabulary they share.

        Raises:
            VocabularyMismatch: their tokenizers differ.
        """
        if draft is None:
            return cls(target)
        if difference := tokenizer_difference(target.tokenizer, draft.tokenizer):
            raise VocabularyMismatch(
                f"'{draft.source}' cannot draft for '{target.source}': their tokenizers differ. {difference} "
                "Choose a draft from the same model family."
            )
        shared = min(target.vocabulary, draft.vocabulary)
        return cls(replace(target, vocabulary=shared), replace(draft, vocabulary=shared))

    @classmethod
    def load(
        cls,
        target: str,
        draft: str | None = None,
        *,
        device: str | None = None,
        dtype: str = "auto",
    ) -> "ModelPair":
        """Load both by source; see `LanguageModel.load` and `ModelPair.of` for the errors."""
        loaded = LanguageModel.load(target, device=device, dtype=dtype)
        return cls.of(loaded, LanguageModel.load(draft, device=device, dtype=dtype) if draft else None)

    @property
    def context_length(self) -> int:
        """Most tokens that every model of the pair can look back on."""
        return min(model.context_length for model in (self.target, self.draft) if model)


def tokenizer_difference(target: PreTrainedTokenizerBase, draft: PreTrainedTokenizerBase) -> str | None:
    """One sentence on how two tokenizers differ, or None if they are the same for every id and a probe text."""
    ours, theirs = target.get_vocab(), draft.get_vocab()
    if ours != theirs:
        common = len(ours.items() & theirs.items())
        first = min(i for _, i in ours.items() ^ theirs.items())
        at_first = [
            next((token for token, i in vocabulary.items() if i == first), None) for vocabulary in (ours, theirs)
        ]
        return (
            f"The target has {len(ours):,} tokens, the draft {len(theirs):,}, and {common:,} of them have the same id; the first "
            f"to differ is id {first}: {at_first[0]!r} for the target, {at_first[1]!r} for the draft."
        )
    if target.encode(PROBE) != draft.encode(PROBE):
        return "They have the same tokens but split text differently."
    return None
