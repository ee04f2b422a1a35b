"""Training is a function of its settings: killed or not, and again."""

from pathlib import Path

import pytest
import torch
from torch import Tensor
from transformers import LlamaForCausalLM

from decoding.alignment import train as training
from decoding.alignment.data import FORCED, Conversations
from decoding.alignment.evaluate import acceptance_rate, head_mass, overlap
from decoding.alignment.losses import LOSSES
from decoding.alignment.student import count_tokens, fit_map, frequent_ids, make_student, own_weights
from decoding.alignment.train import TrainSettings, rows_of_step, train
from decoding.settings import DecodingSettings

HEAD_IDS = torch.arange(0, 40, 2)


def trained(target: LlamaForCausalLM, data: Conversations, folder: Path, **changes) -> dict[str, Tensor]:
    student = make_student(target, [0, 3], HEAD_IDS)
    train(student, data, TrainSettings(**{"steps": 6, "rows": 2, "warmup": 2, **changes}), folder, save_every=2)
    return own_weights(student)


def equal(some: dict[str, Tensor], others: dict[str, Tensor]) -> bool:
    return all(torch.equal(some[name], others[name]) for name in some)


def test_a_killed_run_ends_with_the_same_weights(target, conversations, tmp_path, monkeypatch):
    whole = trained(target, conversations, tmp_path / "whole")
    step = training._step

    def killed_at_4(*arguments):
        if arguments[-1] == 4:
            raise KeyboardInterrupt
        return step(*arguments)

    monkeypatch.setattr(training, "_step", killed_at_4)
    with pytest.raises(KeyboardInterrupt):
        trained(target, conversations, tmp_path / "killed")
    monkeypatch.setattr(training, "_step", step)
    assert equal(trained(target, conversations, tmp_path / "killed"), whole)


def test_the_seed_decides(target, conversations, tmp_path):
    first = trained(target, conversations, tmp_path / "first")
    assert equal(trained(target, conversations, tmp_path / "again"), first)
    assert not equal(trained(target, conversations, tmp_path / "other", seed=1), first)


def test_a_run_with_other_settings_is_not_continued(target, conversations, tmp_path):
    trained(target, conversations, tmp_path)
    with pytest.raises(ValueError, match="other settings"):
        trained(target, conversations, tmp_path, seed=1)


@pytest.mark.parametrize("loss", LOSSES)
def test_training_raises_the_acceptance_rate_and_leaves_the_embeddings(loss, target, conversations, tmp_path):
    student = make_student(target, [0, 3], torch.arange(40))
    embeddings = student.get_input_embeddings().weight.clone()
    head = target.lm_head.weight.detach()
    plain = [DecodingSettings(top_k=0, top_p=1)]
    before = acceptance_rate(student, head, conversations, plain)[0]
    train(student, conversations, TrainSettings(loss=loss, steps=40, rows=4, warmup=2, learning_rate=3e-3), tmp_path)
    assert acceptance_rate(student, head, conversations, plain)[0] > before + 0.02
    assert torch.equal(student.get_input_embeddings().weight, embeddings)


def test_the_fitted_map_is_the_least_squares_one(target, conversations):
    student = make_student(target, [0, 1], HEAD_IDS)
    written = conversations.writers[:, 1:] != FORCED
    with torch.inference_mode():
        ours = student.model(conversations.tokens[:, :-1].long()).last_hidden_state[written]
    theirs = conversations.hidden[written].float()
    fit_map(student, conversations, ridge=0.0)
    expected = torch.linalg.lstsq(ours, theirs).solution.T
    assert torch.allclose(student.lm_head.map.weight, expected, atol=1e-3)


def test_an_epoch_reads_every_conversation_once():
    read = torch.cat([rows_of_step(step, 4, 12, seed=0) for step in range(3)])
    assert sorted(read.tolist()) == list(range(12))


def test_the_learning_rate_rises_stays_and_falls_to_zero():
    settings = TrainSettings(steps=100, warmup=10, cooldown=0.5, learning_rate=1.0)
    rates = [settings.rate_at(step) for step in range(101)]
    assert rates[0] == 0.1 and rates[9] == rates[49] == 1 and rates[75] == pytest.approx(25 / 51) and rates[100] == 0


def test_the_target_accepts_itself(target, conversations):
    own = make_student(target, [0, 1, 2, 3], torch.arange(40))
    rates = acceptance_rate(own, target.lm_head.weight.detach(), conversations, [DecodingSettings(top_k=0, top_p=1)])
    assert rates[0] == pytest.approx(1, abs=5e-3)  # states are kept in half precision


def test_overlap_of_known_laws():
    p, q = torch.tensor([[0.5, 0.5, 0.0]]), torch.tensor([[0.2, 0.0, 0.8]])
    assert overlap(p.log(), q.log()).item() == pytest.approx(0.2)


def test_head_keeps_frequent_and_indispensable_tokens(target, conversations):
    counts = count_tokens(conversations, 40)
    ids = frequent_ids(counts, 10, [39])
    assert ids.tolist() == sorted(ids.tolist()) and 39 in ids
    assert counts[ids].sum() >= counts.sort().values[-9:].sum()
    head = target.lm_head.weight.detach()
    assert head_mass(torch.arange(40), head, conversations) == pytest.approx(1, abs=5e-3)
    assert head_mass(ids, head, conversations) < 0.9
