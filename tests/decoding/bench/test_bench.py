"""The bench: its figures against hand computation, its runs against the methods themselves, its checkpoint against interruption."""

import csv
import io
import json
import math
import os
import subprocess
import sys

import pytest
import torch

from decoding.bench.contestants import contestant
from decoding.bench.measure import Checkpoint, jobs, log_likelihood
from decoding.bench.peers import Peer
from decoding.bench.prompts import BenchPrompt, read_prompts
from decoding.bench.record import Bench, Machine, Outcome, Plan
from decoding.bench.roofline import Rates, floor_seconds, measure_rates
from decoding.bench.run import Asked, run_bench
from decoding.bench.table import markdown, rows, to_csv
from decoding.decode import decode
from decoding.pair import ModelPair
from decoding.settings import DecodingSettings
from tests.decoding.tiny import PROMPT, as_language_model, cousin, tiny_model, tiny_pair

GREEDY = DecodingSettings(temperature=0, max_new_tokens=12, chat=False)
FEW = DecodingSettings(max_new_tokens=6, chat=False)


@pytest.fixture(scope="module")
def pair() -> ModelPair:
    return tiny_pair("Llama")


def outcome(contestant="single_token", prompt=0, seed=0, **changes) -> Outcome:
    measured = {
        "tokens": (1, 2, 1),
        "seconds": 1.5,
        "first_token_seconds": 0.5,
        "target_passes": 3,
        "target_tokens": 3,
        "target_seconds": 0.9,
        "draft_passes": 0,
        "draft_tokens": 0,
        "draft_seconds": 0.0,
        "drafted": None,
        "accepted": None,
        "log_p": -3.0,
        "joules": None,
        "peak_bytes": None,
    }
    return Outcome(contestant=contestant, prompt=prompt, seed=seed, **(measured | changes))


def plan(pair, *contestants, prompts=2, seeds=(0,), settings=FEW) -> Plan:
    return Plan(
        contestants=contestants,
        prompts=[BenchPrompt(kind="list", text=f"{PROMPT} w{i}") for i in range(prompts)],
        seeds=seeds,
        settings=settings,
        target=pair.target.info,
        draft=pair.draft.info,
        plain_dtype="float32",
    )


def bench(pair, outcomes) -> Bench:
    here = {
        "processor": "p",
        "cores": 2,
        "threads": 1,
        "device": "no GPU",
        "python": "3",
        "torch": "2",
        "transformers": "5",
    }
    return Bench(
        plan=plan(pair, "single_token", "mtad"),
        titles=("Single-token sampling", "MTAD"),
        machine=Machine(date="2026-01-01", **here),
        rates=Rates(bytes_per_second=1e9, flops_per_second=1e12),
        weight_bytes={"target": 100_000_000, "draft": 10_000_000},
        outcomes=outcomes,
    )


def test_a_row_holds_medians_sums_and_estimates(pair):
    made = bench(
        pair,
        [
            outcome(),
            outcome(prompt=1, tokens=(5, 6, 7, 8), seconds=1.0, target_passes=4, target_tokens=4, log_p=-1.0),
            outcome("mtad", drafted=8, accepted=2, draft_passes=10, draft_tokens=12, joules=6.0, log_p=-1.5),
        ],
    )
    single, mtad = rows(made)
    assert (single.runs, single.tokens, single.target_passes) == (2, 7, 7)
    assert (single.tokens_per_second.median, single.tokens_per_second.low) == (3.0, 2.5)
    assert single.perplexity == pytest.approx(math.exp(4 / 7))
    assert single.distinct_1 == pytest.approx((2 / 3 + 1) / 2)
    assert single.bytes_per_token == pytest.approx(100e6)
    assert single.flops_per_token == pytest.approx(2 * pair.target.info.parameters)
    assert single.target_pass_seconds == pytest.approx(1.8 / 7)
    assert single.target_floor == pytest.approx(1.8 / 7 / 0.1)
    assert (single.acceptance, single.joules_per_token, single.draft_pass_seconds) == (None, None, None)
    assert (mtad.acceptance, mtad.joules_per_token, mtad.tokens_per_target_pass) == (0.25, 2.0, 1.0)
    assert mtad.bytes_per_token == pytest.approx((3 * 100e6 + 10 * 10e6) / 3)


def test_the_table_and_the_csv_hold_a_line_for_each_contestant(pair):
    made = bench(pair, [outcome(), outcome("mtad", joules=6.0)])
    lines = markdown(made).splitlines()
    assert lines[2].startswith("| Single-token sampling | 2.0 (2.0 to 2.0) | 0.50 | 1.00 | – | 2.72 |")
    assert [line.split("|")[-2].strip() for line in lines[2:4]] == ["not measured", "2.00"]
    table = list(csv.DictReader(io.StringIO(to_csv(made))))
    assert [row["contestant"] for row in table] == ["single_token", "mtad"]
    assert float(table[0]["tokens_per_second_median"]) == 2.0


def test_the_floor_is_whichever_takes_longer():
    rates = Rates(bytes_per_second=10, flops_per_second=100)
    assert floor_seconds(rates, weight_bytes=50, parameters=10, tokens=1) == 5
    assert floor_seconds(rates, weight_bytes=50, parameters=1000, tokens=2) == 40


def test_rates_are_measured():
    rates = measure_rates(torch.device("cpu"))
    assert rates.bytes_per_second > 1e8
    assert rates.flops_per_second > 1e8


def test_likelihood_is_that_of_the_trace(pair):
    trace = decode("single_token", pair, PROMPT, FEW)
    expected = sum(token.log_p for step in trace.steps for token in step.emitted)
    assert log_likelihood(pair.target, trace.prompt.token_ids, trace.result.token_ids) == pytest.approx(
        expected, abs=1e-4
    )


@pytest.mark.parametrize("name", ["generate", "assisted", "assisted,draft_length=3"])
def test_greedy_peers_write_what_our_lanes_write(pair, name):
    ours = contestant("single_token", pair, pair, GREEDY).attempt(PROMPT, 0)
    theirs = contestant(name, pair, pair, GREEDY).attempt(PROMPT, 0)
    assert theirs.tokens == ours.tokens
    assert theirs.first_token_seconds > 0
    assert theirs.target.passes <= len(theirs.tokens)


def test_passes_of_peers_are_counted(pair):
    alone = contestant("generate", pair, pair, GREEDY).attempt(PROMPT, 0)
    assert (alone.target.passes, alone.draft.passes) == (len(alone.tokens), 0)
    prompt = len(pair.target.tokenizer.encode(PROMPT))
    assert alone.target.tokens == prompt + len(alone.tokens) - 1


def test_what_our_lanes_cost_is_what_their_trace_says(pair):
    attempt = contestant("mtad,threshold=0.1", pair, pair, FEW).attempt(PROMPT, 3)
    trace = decode("mtad", pair, PROMPT, FEW.model_copy(update={"threshold": 0.1, "seed": 3}))
    figures = trace.result.metrics
    assert attempt.tokens == list(trace.result.token_ids)
    assert (attempt.target.passes, attempt.draft.passes) == (figures.target_passes, figures.draft_passes)
    assert (attempt.drafted, attempt.accepted) == (figures.drafted, figures.accepted)


def test_a_draft_that_was_set_up_for_one_peer_is_not_for_the_next(pair):
    fixed, free = (Peer("assisted", pair, GREEDY, length) for length in (3, None))
    fixed(PROMPT, 0)
    assert pair.draft.model.generation_config.num_assistant_tokens == 3
    free(PROMPT, 0)
    assert pair.draft.model.generation_config.num_assistant_tokens in (None, 20)


def test_contestants_take_turns_to_begin(pair):
    order = jobs(plan(pair, "a", "b", "c", prompts=2, seeds=(0, 1)))
    assert [name for _, _, name in order[:9]] == ["a", "b", "c", "b", "c", "a", "c", "a", "b"]
    assert {(prompt, seed) for prompt, seed, _ in order} == {(0, 0), (0, 1), (1, 0), (1, 1)}


def test_a_bench_goes_on_from_its_checkpoint(pair, tmp_path):
    file, made = tmp_path / "checkpoint.jsonl", plan(pair, "single_token")
    Checkpoint(file, made).add(outcome())
    with file.open("a") as opened:
        opened.write('{"contestant": "single_to')  # ended while it wrote
    again = Checkpoint(file, made)
    assert again.outcomes == [outcome()]
    again.add(outcome(prompt=1))
    assert Checkpoint(file, made).outcomes == [outcome(), outcome(prompt=1)]


def test_a_checkpoint_of_another_plan_is_refused(pair, tmp_path):
    file = tmp_path / "checkpoint.jsonl"
    Checkpoint(file, plan(pair, "single_token"))
    with pytest.raises(ValueError, match="name another folder"):
        Checkpoint(file, plan(pair, "mtad"))


def test_a_whole_bench(pair, tmp_path):
    made = plan(pair, "single_token", "mtad")
    asked = Asked(made.contestants, made.prompts, (0, 1), FEW)
    result = run_bench(asked, pair, pair, tmp_path)
    assert [(o.prompt, o.seed, o.contestant) for o in result.outcomes] == jobs(result.plan)
    for one in result.outcomes:
        made_by_hand = decode(
            one.contestant, pair, made.prompts[one.prompt].text, FEW.model_copy(update={"seed": one.seed})
        )
        assert one.tokens == made_by_hand.result.token_ids
        assert one.joules is None
    assert Bench.model_validate_json(result.model_dump_json()) == result


@pytest.mark.parametrize("name", ["magic", "mtad,colour=red", "assisted,colour=red", "mtad,threshold=7"])
def test_contestants_that_cannot_be_are_refused(pair, name):
    with pytest.raises(ValueError, match=r"magic|colour|threshold"):
        contestant(name, pair, pair, FEW)


@pytest.mark.parametrize("text", ["[]", "{", '{"list": "text"}', '{"list": []}', '{"list": [""]}'])
def test_files_that_hold_no_prompts_are_refused(tmp_path, text):
    file = tmp_path / "prompts.json"
    file.write_text(text)
    with pytest.raises(ValueError, match="prompt"):
        read_prompts(file)


def test_the_prompts_are_forty_of_five_kinds():
    prompts = read_prompts()
    kinds = {prompt.kind for prompt in prompts}
    assert (len(prompts), kinds) == (40, {"chat", "code", "summary", "question", "list"})
    assert len({prompt.text for prompt in prompts}) == 40
    assert len(read_prompts(per_kind=1)) == 5


@pytest.mark.slow
def test_processes_that_share_a_bench_write_what_one_writes(tmp_path):
    models = {"target": tiny_model("Llama"), "draft": cousin(tiny_model("Llama"), 0.3)}
    for name, model in models.items():
        model.save_pretrained(tmp_path / name)
        as_language_model(model).tokenizer.save_pretrained(tmp_path / name)
    (tmp_path / "prompts.json").write_text(json.dumps({"list": [PROMPT, f"{PROMPT} w1", f"{PROMPT} w2"]}))
    command = ["-m", "decoding", "bench", "--target", str(tmp_path / "target"), "--draft", str(tmp_path / "draft")]
    command += ["--prompts", str(tmp_path / "prompts.json"), "--max-new-tokens", "6", "--seeds", "2", "--no-chat"]
    command += ["--contestant", "single_token", "--contestant", "mtad", "--contestant", "generate"]
    launch = ["-m", "accelerate.commands.launch", "--cpu", "--num_processes", "2", "--num_machines", "1"]
    launch += ["--mixed_precision", "no", "--dynamo_backend", "no"]
    texts = []
    for ways in ([], launch):
        folder = tmp_path / f"out{len(texts)}"
        environment = os.environ | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
        subprocess.run([sys.executable, *ways, *command, "--out", str(folder)], check=True, env=environment)
        made = Bench.model_validate_json((folder / "bench.json").read_text())
        texts.append([(o.prompt, o.seed, o.contestant, o.tokens) for o in made.outcomes])
    assert len(texts[0]) == 18
    assert texts[0] == texts[1]
