"""Scripted models for the page: they say what a test wants, slowly enough to watch, and count their passes.

A prompt that holds a script's name gets that script. The draft knows it but for every seventh token.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain

from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast
from transformers.convert_slow_tokenizer import bytes_to_unicode

from app.models import Models
from decoding.context import Context, Spent
from decoding.pair import ModelPair
from decoding.presets import DEFAULT_PRESET, Preset
from decoding.toy import ToyModel
from decoding.trace import ModelInfo
from decoding.weights import WeightsError

GO, END = "<|go|>", "<|end|>"
CODE, IMAGE = "${7*7}", "<img src=x onerror=window.harmed=1>"
WORDS = [" the", " sky", " is", " blue", " and", " wide", ",", ".", "\n", "\t", " 天", "空"]
SCRIPTS = {
    "plain": [" the", " sky", " is", " blue", " and", " wide", ",", " the", " sky", "."],
    "hazard": [" the", CODE, " sky", IMAGE, " is", "{{value}}", "</script>"],
    "unicode": [b"\xf0\x9f\x98", b"\x80", " 天", "空", "\n", b"\xe6\x97", b"\xa5", "\t", " blue", "\n", "."],
    "short": [" the", " sky", "."],
}
FAILING = "failing"  # the draft's first pass for a prompt that holds this raises


def letters(piece: str | bytes) -> str:
    """A piece as byte-level tokenizers write it."""
    data = piece if isinstance(piece, bytes) else piece.encode()
    return "".join(bytes_to_unicode()[byte] for byte in data)


def make_tokenizer() -> PreTrainedTokenizerFast:
    """One token a byte, the pieces of the scripts, and two special tokens."""
    pieces = [letters(bytes([byte])) for byte in range(256)]
    pieces += [letters(piece) for piece in chain(WORDS, *SCRIPTS.values())]
    vocabulary = {piece: i for i, piece in enumerate(dict.fromkeys(pieces))}
    tokenizer = Tokenizer(models.BPE(vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=END, additional_special_tokens=[GO])
    fast.chat_template = "{{ messages[0]['content'] }}" + GO
    return fast


@dataclass(eq=False)
class ScriptedModel:
    """Stands in for a LanguageModel.

    Attributes:
        pass_seconds: how long a pass takes.
        blind: every how many tokens it does not know the script; 0 is never.
    """

    name: str
    tokenizer: PreTrainedTokenizerFast
    pass_seconds: float
    blind: int = 0
    context_length: int = 500
    passes: int = 0
    source: str = field(init=False)

    def __post_init__(self) -> None:
        self.source = self.name
        self.vocabulary = len(self.tokenizer)
        self.eos_ids = frozenset({self.tokenizer.eos_token_id})
        size = {"parameters": 1, "vocabulary": self.vocabulary, "dtype": "float64", "device": "cpu"}
        self.info = ModelInfo(name=self.name, source=self.name, **size)
        self._go = self.tokenizer.convert_tokens_to_ids(GO)

    def open(self, before_pass: Callable[[], None] = lambda: None) -> Context:
        def one_pass() -> None:
            before_pass()
            self.passes += 1
            time.sleep(self.pass_seconds)
            context.spent += Spent(seconds=self.pass_seconds)

        context = ToyModel(self._law).open(one_pass)
        return context

    def _law(self, text: Sequence[int]) -> list[float]:
        start = max((i + 1 for i, token in enumerate(text) if token == self._go), default=len(text))
        prompt = self._prompt(tuple(text[:start]))
        if self.blind and FAILING in prompt:
            raise RuntimeError("the scripted draft was told to fail")
        script = next((script for name, script in SCRIPTS.items() if name in prompt), SCRIPTS["plain"])
        position = len(text) - start
        if "short" in prompt and position >= len(script):
            favourite = self.tokenizer.eos_token_id
        elif self.blind and position % self.blind == self.blind - 1:
            favourite = self._id(WORDS[position % len(WORDS)])
        else:
            favourite = self._id(script[position % len(script)])
        return self._favouring(favourite)

    def _favouring(self, favourite: int) -> list[float]:
        law = [0.0] * self.vocabulary
        law[favourite] = 0.9
        for word, p in zip(WORDS, (0.04, 0.02, 0.02, 0.02), strict=False):
            law[self._id(word)] += p
        return law

    @cache  # noqa: B019 - one of a few models that live as long as the process
    def _prompt(self, tokens: tuple[int, ...]) -> str:
        return self.tokenizer.decode(tokens)

    @cache  # noqa: B019
    def _id(self, piece: str | bytes) -> int:
        return self.tokenizer.convert_tokens_to_ids(letters(piece))


OTHER = "gpt2-xl"  # the key under which a second scripted pair is offered
PRESETS = {
    DEFAULT_PRESET: Preset("Scripted pair", "scripted target", "scripted draft", "no licence", 0.1),
    OTHER: Preset("Other scripted pair", "other target", "other draft", "no licence", 0.2),
    "opt-13b": Preset("Missing pair", "missing target", "missing draft", "no licence", 0.3),
}


def scripted_models(pair: ModelPair) -> Models:
    """Offers the pair, another one, and one that cannot be loaded."""
    others = {DEFAULT_PRESET: pair, OTHER: scripted_pair(0.02, "other")}

    def load(key: str) -> ModelPair:
        if key not in others:
            raise WeightsError("'missing target' is not on this machine.")
        return others[key]

    return Models(PRESETS, load)


def scripted_pair(pass_seconds: float = 0.02, name: str = "scripted") -> ModelPair:
    """A target and a draft five times as fast."""
    tokenizer = make_tokenizer()
    target = ScriptedModel(f"{name} target", tokenizer, pass_seconds)
    draft = ScriptedModel(f"{name} draft", tokenizer, pass_seconds / 5, blind=7)
    return ModelPair(target, draft)  # type: ignore[arg-type]
