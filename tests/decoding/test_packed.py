"""Packed weights: the same laws as unpacked ones up to float16, for every architecture; honest about what they are."""

import pytest
import torch
import transformers

from decoding.decode import decode
from decoding.language_model import DTYPES, LanguageModel, UnsupportedModel, Weights
from decoding.packed import PACKED, PackedLinear, can_pack, pack
from decoding.pair import ModelPair
from decoding.settings import DecodingSettings
from tests.decoding.tiny import CONFIGS, PROMPT, as_language_model, cousin, tiny_model

pytestmark = pytest.mark.skipif(not can_pack(), reason="this torch has no kernel for packed weights")
IDS = torch.tensor([[3, 1, 4, 15, 9, 26, 5]])


def halved(model: torch.nn.Module) -> torch.nn.Module:
    """A model in float32 whose matrices have the values that float16 leaves."""
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() == 2:
                weight.copy_(weight.half().float())
    return model


@pytest.fixture
def folder(tmp_path):
    model = tiny_model("Llama", tie_word_embeddings=True)
    model.save_pretrained(tmp_path)
    as_language_model(model).tokenizer.save_pretrained(tmp_path)
    return tmp_path


@pytest.mark.parametrize("architecture", CONFIGS)
def test_laws_are_those_of_the_halved_weights(architecture):
    model = halved(tiny_model(architecture))
    with torch.inference_mode():
        expected = model(IDS).logits
        found = pack(model)(IDS).logits
    assert not [name for name, module in model.named_modules() if isinstance(module, torch.nn.Linear)]
    assert found.dtype == torch.float32
    assert torch.allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize("architecture", CONFIGS)
def test_decoding_on_packed_weights_has_the_laws_of_plain_passes(architecture):
    target = as_language_model(pack(tiny_model(architecture)))
    draft = as_language_model(pack(cousin(tiny_model(architecture), 0.3)))
    trace = decode("mtad", ModelPair.of(target, draft), PROMPT, DecodingSettings(max_new_tokens=20, threshold=0.1))
    ids = [*trace.prompt.token_ids, *trace.result.token_ids]
    with torch.inference_mode():
        laws = target.model(torch.tensor([ids])).logits[0, :, : target.vocabulary].log_softmax(-1)
    start = len(trace.prompt.token_ids) - 1
    for i, token in enumerate(token for step in trace.steps for token in step.emitted):
        assert token.log_p == pytest.approx(float(laws[start + i, token.token]), abs=1e-4)


def test_a_linear_layer_with_and_without_bias():
    for bias in (True, False):
        linear = halved(torch.nn.Linear(8, 5, bias=bias))
        x = torch.randn(2, 3, 8)
        assert torch.allclose(PackedLinear(linear.weight, linear.bias)(x), linear(x), atol=1e-3)


def test_on_a_cpu_weights_are_packed_unless_asked_otherwise(folder):
    packed, plain = (
        LanguageModel.load(str(folder), device="cpu"),
        LanguageModel.load(str(folder), device="cpu", dtype="float32"),
    )
    assert (packed.info.dtype, plain.info.dtype) == (PACKED, "float32")
    assert packed.info.parameters == plain.info.parameters == plain.model.num_parameters()
    assert packed.weights.pass_bytes == 2 * plain.info.parameters
    assert plain.weights.pass_bytes == 4 * plain.info.parameters
    ids = IDS % plain.vocabulary
    with torch.inference_mode():
        assert torch.allclose(packed.model(ids).logits, plain.model(ids).logits, atol=0.05)


def test_an_embedding_that_is_no_head_is_not_read_in_a_pass():
    model = tiny_model("Llama", tie_word_embeddings=False)
    embedding = model.get_input_embeddings().weight.numel()
    assert Weights.of(model).pass_bytes == 4 * (model.num_parameters() - embedding)


def test_what_a_machine_cannot_do_is_refused_in_words(folder, monkeypatch):
    monkeypatch.setattr("decoding.language_model.can_pack", lambda: False)
    assert LanguageModel.load(str(folder), device="cpu").info.dtype == "float32"
    with pytest.raises(UnsupportedModel, match=r"no kernel for it\. Choose float32"):
        LanguageModel.load(str(folder), device="cpu", dtype=PACKED)
    with pytest.raises(UnsupportedModel, match=rf"There is no dtype .int3.\. Dtypes: auto, {', '.join(DTYPES)}"):
        LanguageModel.load(str(folder), device="cpu", dtype="int3")


def test_packing_where_the_kernel_is_missing(monkeypatch):
    def missing(*_):
        raise RuntimeError("Didn't find engine for operation quantized::linear_prepack_fp16 NoQEngine")

    monkeypatch.setattr("decoding.packed.PackedLinear", missing)
    can_pack.cache_clear()
    assert not can_pack()
    can_pack.cache_clear()


@pytest.mark.slow
def test_packed_weights_of_the_default_target_lose_nothing():
    """Its weights come in float16, so packing them changes no value: greedy texts are the same unless two logits are close."""
    source = "SmolLM2-135M-Instruct"
    packed, plain = (LanguageModel.load(source, device="cpu", dtype=dtype) for dtype in (PACKED, "float32"))
    settings = DecodingSettings(temperature=0, max_new_tokens=24)
    texts = [decode("single_token", ModelPair.of(m, None), "Why is the sky blue?", settings) for m in (packed, plain)]
    assert texts[0].result.token_ids == texts[1].result.token_ids
    log_ps = [[token.log_p for step in trace.steps for token in step.emitted] for trace in texts]
    assert log_ps[0] == pytest.approx(log_ps[1], abs=1e-3)


def test_models_that_transformers_would_tie_stay_whole():
    model = transformers.AutoModelForCausalLM.from_config(CONFIGS["GPT-2"]())
    every = model.num_parameters()
    assert Weights.of(model, PACKED) == Weights(PACKED, every, 2 * every)
