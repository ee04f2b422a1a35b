"""Every number that a method records from cached passes equals that of plain ones, whatever was rolled back on the way."""

from itertools import product

import pytest

from decoding.decode import decode
from decoding.settings import DecodingSettings
from tests.audit.audit import audit
from tests.decoding.tiny import CONFIGS, PROMPT, tiny_pair

VARIATIONS = (
    {},
    {"temperature": 0.7, "draft_length": 1, "beam_width": 3, "top_p": 1},
    {"temperature": 0, "draft_length": 3, "beam_width": 2},
    {"draft_search": "search", "draft_length": 6, "beam_width": 6, "top_k": 0, "threshold": 0.02},
    {"beam_width": 1, "draft_length": 8, "threshold": 0.3},
    {"temperature": 1.5, "top_k": 0, "top_p": 1, "beam_width": 16, "draft_length": 2},
    {"tree_verification": True, "draft_length": 3, "threshold": 0.2},
    {"tree_verification": True, "draft_search": "search", "draft_length": 6, "beam_width": 3, "threshold": 0.02},
    {"tree_verification": True, "temperature": 0, "draft_length": 4, "beam_width": 5},
)


@pytest.mark.parametrize("architecture", CONFIGS)
@pytest.mark.parametrize("method", ["single_token", "speculative", "mtad", "mtjd"])
def test_cached_passes_equal_plain_ones(architecture, method):
    pair = tiny_pair(architecture, noise=0.4 if architecture == "Gemma-3" else 0.1)
    accepted = refused = 0
    for seed, changes in enumerate(VARIATIONS[: {"single_token": 2, "speculative": 6, "mtjd": 4}.get(method)]):
        settings = DecodingSettings(**({"max_new_tokens": 16, "seed": seed} | changes))
        trace = decode(method, pair, PROMPT, settings)
        ledger = audit(trace, pair.target.model, pair.draft.model, pair.target.eos_ids)
        assert not ledger.failures
        assert ledger.largest < 1e-4, ledger.largest_where
        verdicts = [verdict for step in trace.steps for verdict in step.verdicts]
        accepted += sum(verdict.accepted for verdict in verdicts)
        refused += sum(not verdict.accepted for verdict in verdicts)
    assert method in {"single_token", "mtjd"} or (accepted > 10 and refused > 10)


def test_target_and_draft_may_be_of_different_architectures():
    llama, gemma = tiny_pair("Llama"), tiny_pair("Gemma-3")
    pair = type(llama).of(llama.target, gemma.target)
    for method, seed in product(("speculative", "mtad"), range(2)):
        settings = DecodingSettings(max_new_tokens=20, seed=seed, top_k=0, top_p=1, threshold=0.01)
        ledger = audit(decode(method, pair, PROMPT, settings), pair.target.model, pair.draft.model, pair.target.eos_ids)
        assert not ledger.failures
        assert ledger.largest < 1e-4
