"""Joined models: borrowed embeddings, a restricted head, and the shipped draft."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoTokenizer, LlamaForCausalLM

from decoding import joined
from decoding.alignment.student import export, make_student, own_weights
from decoding.joined import EMBEDDINGS, HEAD_IDS, is_joined, load_joined
from decoding.weights import PACKAGED_TARGET, SHIPPED_DRAFT, WeightsError, locate

MEGABYTE = 1e6
CAN_SAY = torch.tensor([0, 1, 5, 7, 30])


@pytest.fixture
def exported(target: LlamaForCausalLM, tmp_path: Path, monkeypatch) -> tuple[LlamaForCausalLM, Path]:
    """A student and the folder it was exported to, beside its target."""

    class Tokenizer:
        def save_pretrained(self, folder: Path) -> None:
            (folder / "tokenizer.json").write_text("{}")

    target.save_pretrained(tmp_path / "target")
    student = make_student(target, [0, 3], CAN_SAY)
    with torch.no_grad():
        student.lm_head.map.weight += 0.1 * torch.randn(16, 16, generator=torch.Generator().manual_seed(0))
    export(student, Tokenizer(), str(tmp_path / "target"), tmp_path / "draft")
    return student, tmp_path / "draft"


def test_a_loaded_draft_has_the_law_of_the_exported_one(exported):
    student, folder = exported
    loaded = load_joined(folder, torch.float32)
    tokens = torch.arange(12)[None]
    with torch.inference_mode():
        laws = [model(tokens).logits.softmax(-1) for model in (student, loaded)]
    assert torch.allclose(*laws, atol=2e-2)  # shipped in half precision


def test_tokens_outside_the_head_have_probability_zero(exported):
    loaded = load_joined(exported[1], torch.float32)
    with torch.inference_mode():
        logits = loaded(torch.arange(12)[None]).logits
    law = logits.log_softmax(-1).exp()
    assert logits.shape == (1, 12, 40)
    outside = torch.ones(40, dtype=torch.bool).index_fill(0, CAN_SAY, False)
    assert (law[..., outside] == 0).all() and (law[..., CAN_SAY] > 0).all()
    assert torch.allclose(law.sum(-1), torch.ones(1, 12))


def test_embeddings_are_the_lenders_and_not_shipped(exported, target):
    folder = exported[1]
    shipped = load_file(folder / "model.safetensors")
    assert EMBEDDINGS not in shipped and set(shipped) == {*own_weights(exported[0]), HEAD_IDS}
    embeddings = load_joined(folder, torch.float32).get_input_embeddings().weight
    assert torch.equal(embeddings, target.get_input_embeddings().weight)


def test_a_plain_model_is_not_joined(target, tmp_path):
    target.save_pretrained(tmp_path)
    assert not is_joined(tmp_path) and not is_joined(tmp_path / "nowhere")


def test_weights_that_do_not_fit_are_refused(exported):
    config = json.loads((exported[1] / "config.json").read_text())
    (exported[1] / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 3}))
    with pytest.raises(RuntimeError, match="Missing"):
        load_joined(exported[1], torch.float32)


SHIPPED = joined.Path(locate(SHIPPED_DRAFT))


def test_shipped_files_are_small_and_half_precision():
    assert is_joined(SHIPPED)
    assert sum(file.stat().st_size for file in SHIPPED.iterdir()) <= 60 * MEGABYTE
    weights = load_file(SHIPPED / "model.safetensors")
    ids = weights.pop(HEAD_IDS)
    assert {weight.dtype for weight in weights.values()} == {torch.float16}
    assert all(weight.isfinite().all() for weight in weights.values())
    assert torch.equal(ids, ids.unique())
    config = json.loads((SHIPPED / "config.json").read_text())
    assert config["architectures"] == ["LlamaForCausalLM"] and config[joined.LENDER_KEY] == PACKAGED_TARGET


def test_the_shipped_draft_knows_its_targets_chat():
    try:
        folder = locate(PACKAGED_TARGET, download=False)
    except WeightsError:
        pytest.skip("the target's weights are not on this machine")
    tokenizer = AutoTokenizer.from_pretrained(SHIPPED, local_files_only=True)
    assert tokenizer.get_vocab() == AutoTokenizer.from_pretrained(folder, local_files_only=True).get_vocab()
    text = tokenizer.apply_chat_template(
        [{"role": "user", "content": "Name the capital of France."}], tokenize=False, add_generation_prompt=True
    )
    answer = tokenizer.encode(f"{text}The capital of France is", add_special_tokens=False, return_tensors="pt")
    with torch.inference_mode():
        law = load_joined(SHIPPED, torch.float32)(answer).logits[0, -1].softmax(-1)
    assert law.sum().item() == pytest.approx(1, abs=1e-4)
    assert law.max() > 0.05  # far from uniform over thousands of tokens
