"""Training is a function of its settings: killed or not, and again."""

from pathlib import Path

import pytest
import torch
from torch import Tensor
from transformers import LlamaForCausalLM

from decoding.alignment import train as training
from decoding.alignment.data import FORCED, Conversations
from decoding.alignment.evaluate import agreement, mean_law, overlap_and_reach
from decoding.alignment.losses import LOSSES
from decoding.alignment.plot import read_logs
from decoding.alignment.student import fit_map, frequent_ids, make_student, own_weights
from decoding.alignment.train import TrainSettings, rows_of_step, train
from decoding.settings import DecodingSettings
from decoding.warp import warp

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
    before = agreement(student, head, conversations, plain)[0].acceptance_rate
    train(student, conversations, TrainSettings(loss=loss, steps=40, rows=4, warmup=2, learning_rate=3e-3), tmp_path)
    assert agreement(student, head, conversations, plain)[0].acceptance_rate > before + 0.02
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


def test_the_log_starts_before_the_first_step_and_goes_on_over_runs(target, conversations, tmp_path):
    student = make_student(target, [0, 3], HEAD_IDS)
    settings = TrainSettings(steps=6, rows=2, warmup=2)
    for run in ("first", "second"):
        train(student, conversations, settings, tmp_path / run, observe=lambda model: {"alpha": 0.5}, observe_every=4)
    points = read_logs([tmp_path / "first", tmp_path / "second"])
    per_step = 2 * (conversations.tokens.shape[1] - 1)
    assert [point["step"] for point in points] == [0, 4, 6, 0, 4, 6]
    assert [point["tokens"] / per_step for point in points] == [0, 4, 6, 6, 10, 12]


def test_an_epoch_reads_every_conversation_once():
    read = torch.cat([rows_of_step(step, 4, 12, seed=0) for step in range(3)])
    assert sorted(read.tolist()) == list(range(12))


def test_the_learning_rate_rises_stays_and_falls_to_zero():
    settings = TrainSettings(steps=100, warmup=10, cooldown=0.5, learning_rate=1.0)
    rates = [settings.rate_at(step) for step in range(101)]
    assert rates[0] == 0.1 and rates[9] == rates[49] == 1 and rates[75] == pytest.approx(25 / 51) and rates[100] == 0


def test_the_target_accepts_itself(target, conversations):
    own = make_student(target, [0, 1, 2, 3], torch.arange(40))
    found = agreement(own, target.lm_head.weight.detach(), conversations, [DecodingSettings(top_k=0, top_p=1)])
    assert found[0].acceptance_rate == pytest.approx(1, abs=5e-3)  # states are kept in half precision


LAWS = torch.tensor([[[0.4, 0.3, 0.2, 0.1]], [[0.1, 0.0, 0.5, 0.4]]])


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"top_k": 0, "top_p": 1}, 0.1 + 0.2 + 0.1),
        ({"top_k": 3, "top_p": 1}, 0.1 + 2 / 9),  # p̃ = [4, 3, 2, 0] / 9, q̃ = q
        ({"top_k": 3, "top_p": 0.7}, 0.0),  # p̃ = [4, 3, 0, 0] / 7, q̃ = [0, 0, 5, 4] / 9
        ({"temperature": 0}, 0.0),
    ],
)
def test_overlap_and_reach_of_known_laws(settings, expected):
    log_p, log_q = LAWS.log()
    overlap, reach = overlap_and_reach(log_p, log_q, DecodingSettings(**settings))
    p, q = (warp(law, DecodingSettings(**settings)).exp() for law in (log_p, log_q))
    assert overlap.item() == pytest.approx(expected, abs=1e-6)
    assert overlap.item() == pytest.approx(torch.minimum(p, q).sum().item(), abs=1e-6)
    assert reach.item() == pytest.approx(1 - p[0, 1].item(), abs=1e-6)


def test_head_keeps_frequent_and_indispensable_tokens(target, conversations):
    law = mean_law(target.lm_head.weight.detach(), conversations)
    assert law.sum().item() == pytest.approx(1, abs=5e-3)  # states are kept in half precision
    ids = frequent_ids(law, 10, [39])
    assert ids.tolist() == sorted({39, *law.index_fill(0, torch.tensor(39), 0).topk(9).indices.tolist()})


def test_reach_is_the_mass_of_what_the_head_can_say(target, conversations):
    student = make_student(target, [0, 1, 2, 3], HEAD_IDS)
    head = target.lm_head.weight.detach()
    found = agreement(student, head, conversations, [DecodingSettings(top_k=0, top_p=1)])[0]
    assert found.reach == pytest.approx(mean_law(head, conversations)[HEAD_IDS].sum().item(), abs=5e-3)
    assert found.acceptance_rate == pytest.approx(found.reach, abs=5e-3)  # the target itself, but for its head
