"""Errors that speak for themselves, and the sentences for those that do not."""

from app.settings_form import InvalidSettings
from decoding.language_model import UnsupportedModel
from decoding.pair import VocabularyMismatch
from decoding.prompting import InvalidPrompt
from decoding.trace_file import InvalidTrace
from decoding.weights import WeightsError

EXPLAINED = (
    InvalidPrompt,
    InvalidSettings,
    InvalidTrace,
    WeightsError,
    UnsupportedModel,
    VocabularyMismatch,
)
UNEXPECTED = "Something unexpected went wrong on the server. What was written stays here; try again."
GONE = "This run is not kept on the server any more: run it again, or open its downloaded traces."
