"""Models that take the mask of a tree are told from those that do not, and these are refused by name."""

import pytest
import transformers

from decoding.decode import decode
from decoding.language_model import UnsupportedModel
from decoding.pair import ModelPair
from decoding.settings import DecodingSettings
from decoding.tree_mask import takes_tree_mask
from tests.decoding.tiny import CONFIGS, PROMPT, VOCABULARY, as_language_model, tiny_model


@pytest.fixture(scope="module")
def bloom():
    """Bloom reads positions off the mask, and takes none of ours."""
    config = transformers.BloomConfig(vocab_size=VOCABULARY, hidden_size=32, n_layer=2, n_head=4, initializer_range=0.3)
    return as_language_model(transformers.AutoModelForCausalLM.from_config(config).eval(), "tiny-bloom")


@pytest.mark.parametrize("architecture", CONFIGS)
def test_supported_architectures_take_it(architecture):
    assert takes_tree_mask(as_language_model(tiny_model(architecture)))


@pytest.mark.parametrize(
    ("method", "role", "changes", "purpose"),
    [
        ("mtad", "target", {"tree_verification": True}, "tree verification"),
        ("mtad", "draft", {}, "drafting with beams"),
        ("mtjd", "target", {}, "an exact search"),
    ],
)
def test_a_model_that_does_not_is_refused_by_name(bloom, method, role, changes, purpose):
    llama = as_language_model(tiny_model("Llama"))
    pair = ModelPair.of(*((bloom, llama) if role == "target" else (llama, bloom)))
    words = rf"'tiny-bloom' is a bloom model: .* which {purpose} needs. Choose another {role}, or do without {purpose}"
    with pytest.raises(UnsupportedModel, match=words):
        decode(method, pair, PROMPT, DecodingSettings(**changes))


@pytest.mark.parametrize("method", ["single_token", "speculative"])
def test_methods_that_score_no_tree_run_on_it(bloom, method):
    pair = ModelPair.of(bloom, bloom)
    assert decode(method, pair, PROMPT, DecodingSettings(max_new_tokens=4)).result.token_ids
