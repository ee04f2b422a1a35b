"""A bench from its plan to its record; under `accelerate launch` the processes share the work."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from accelerate import PartialState
from accelerate.utils import gather_object
from tqdm.auto import tqdm

from decoding.bench.contestants import Contestant, contestant
from decoding.bench.energy import EnergyMeter
from decoding.bench.machine import this_machine
from decoding.bench.measure import Checkpoint, jobs, measure
from decoding.bench.prompts import BenchPrompt
from decoding.bench.record import Bench, Outcome, Plan
from decoding.bench.roofline import measure_rates
from decoding.language_model import half_dtype
from decoding.pair import ModelPair
from decoding.settings import DecodingSettings


@dataclass(frozen=True)
class Asked:
    """What is to be compared: contestants by name, on prompts, with seeds, under settings."""

    contestants: Sequence[str]
    prompts: Sequence[BenchPrompt]
    seeds: Sequence[int]
    settings: DecodingSettings


def run_bench(asked: Asked, pair: ModelPair, plain: ModelPair, folder: Path) -> Bench | None:
    """Run what is not in the folder's checkpoint yet; the whole bench in the main process, None in the others.

    Args:
        pair: what our lanes run on.
        plain: what peers run on, and the perplexity's judge: the same weights as transformers loads them.

    Raises:
        ValueError: there is no such contestant, or the folder holds another bench.
    """
    state = PartialState()
    plan = _plan(asked, pair, plain)
    taking_part = [contestant(name, pair, plain, asked.settings) for name in plan.contestants]
    device = pair.target.model.device
    rates = measure_rates(device) if state.is_main_process else None
    checkpoint = Checkpoint(folder / _checkpoint_name(state), plan)
    _go_on(checkpoint, taking_part, plan, plain, state)
    outcomes: list[Outcome] = gather_object(checkpoint.outcomes) if state.num_processes > 1 else checkpoint.outcomes
    if not state.is_main_process:
        return None
    order = {job: i for i, job in enumerate(jobs(plan))}
    return Bench(
        plan=plan,
        titles=tuple(one.title for one in taking_part),
        machine=this_machine(device, state.num_processes),
        rates=rates,
        weight_bytes={"target": pair.target.weights.pass_bytes}
        | ({"draft": pair.draft.weights.pass_bytes} if pair.draft else {}),
        outcomes=tuple(sorted(outcomes, key=lambda o: order[o.prompt, o.seed, o.contestant])),
    )


def _go_on(
    checkpoint: Checkpoint, taking_part: Sequence[Contestant], plan: Plan, plain: ModelPair, state: PartialState
) -> None:
    """Run this process's share of what is left. Prompts are dealt out whole, so that contestants stay side by side."""
    done = {(o.prompt, o.seed, o.contestant) for o in checkpoint.outcomes}
    own = [job for job in jobs(plan) if job[0] % state.num_processes == state.process_index]
    todo = [job for job in own if job not in done]
    outcomes = measure(todo, taking_part, plan, plain, EnergyMeter())
    for outcome in tqdm(outcomes, total=len(todo), unit="run", disable=None if state.is_main_process else True):
        checkpoint.add(outcome)


def _plan(asked: Asked, pair: ModelPair, plain: ModelPair) -> Plan:
    return Plan(
        contestants=tuple(asked.contestants),
        prompts=tuple(asked.prompts),
        seeds=tuple(asked.seeds),
        settings=asked.settings,
        target=pair.target.info,
        draft=pair.draft.info if pair.draft else None,
        plain_dtype=plain.target.weights.dtype,
    )


def _checkpoint_name(state: PartialState) -> str:
    shares = f"-{state.process_index + 1}-of-{state.num_processes}" if state.num_processes > 1 else ""
    return f"checkpoint{shares}.jsonl"


def plain_dtype(device: str | None) -> str:
    """The dtype that transformers' models are commonly run in: float32 on a CPU, half precision on a GPU."""
    on_gpu = torch.cuda.is_available() if device is None else device != "cpu"
    return half_dtype() if on_gpu else "float32"
