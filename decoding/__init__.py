"""How language models decode, step by step, with every number kept.

>>> from decoding import DecodingSettings, ModelPair, PRESETS, decode
>>> preset = PRESETS["smollm2-135m"]
>>> pair = ModelPair.load(preset.target, preset.draft)                                        # doctest: +SKIP
>>> trace = decode("mtad", pair, "Why is the sky blue?", DecodingSettings(max_new_tokens=32))  # doctest: +SKIP
>>> trace.result.text, trace.result.metrics.tokens_per_target_pass                            # doctest: +SKIP
>>> [verdict.accepted for verdict in trace.steps[0].verdicts]                                 # doctest: +SKIP
>>> open("trace.json", "w").write(trace.model_dump_json())                                    # doctest: +SKIP
"""

from decoding.decode import Decoding, decode
from decoding.language_model import LanguageModel, UnsupportedModel
from decoding.methods import METHODS
from decoding.pair import ModelPair, VocabularyMismatch
from decoding.presets import DEFAULT_PRESET, PRESETS
from decoding.prompting import InvalidPrompt
from decoding.race import Cancellation, race
from decoding.replay import replay
from decoding.settings import DecodingSettings
from decoding.trace import Step, Trace
from decoding.weights import WeightsError

__all__ = [
    "DEFAULT_PRESET",
    "METHODS",
    "PRESETS",
    "Cancellation",
    "Decoding",
    "DecodingSettings",
    "InvalidPrompt",
    "LanguageModel",
    "ModelPair",
    "Step",
    "Trace",
    "UnsupportedModel",
    "VocabularyMismatch",
    "WeightsError",
    "decode",
    "race",
    "replay",
]
