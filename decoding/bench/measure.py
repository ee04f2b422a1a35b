"""Running a bench: every contestant on every prompt, in turn, so that whatever slows the machine slows them all."""

import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import product
from pathlib import Path

import torch

from decoding.bench.contestants import Contestant
from decoding.bench.energy import EnergyMeter
from decoding.bench.record import Outcome, Plan
from decoding.language_model import LanguageModel
from decoding.pair import ModelPair
from decoding.prompting import prepare_prompt

Job = tuple[int, int, str]  # prompt, seed, contestant


def jobs(plan: Plan) -> list[Job]:
    """What there is to run, in order; who begins changes from prompt to prompt."""
    rounds = product(range(len(plan.prompts)), plan.seeds)
    names = plan.contestants
    return [
        (prompt, seed, names[(turn + i) % len(names)])
        for turn, (prompt, seed) in enumerate(rounds)
        for i in range(len(names))
    ]


class Checkpoint:
    """A file of outcomes so far, one a line behind the plan they belong to; a bench that was ended goes on from it.

    Raises:
        ValueError: the file belongs to a bench with another plan.
    """

    def __init__(self, path: Path, plan: Plan) -> None:
        self._path = path
        self.outcomes: list[Outcome] = []
        head = plan.model_dump_json()
        if not path.exists():
            path.write_text(head + "\n", encoding="utf-8")
            return
        first, *lines = path.read_text(encoding="utf-8").splitlines()
        if first != head:
            raise ValueError(
                f"{path} belongs to a bench with other contestants, prompts or settings: name another folder."
            )
        with suppress(json.JSONDecodeError, ValueError):  # a last line that was cut off is run again
            for line in lines:
                self.outcomes.append(Outcome.model_validate_json(line))
        path.write_text("\n".join([head, *(o.model_dump_json() for o in self.outcomes), ""]), encoding="utf-8")

    def add(self, outcome: Outcome) -> None:
        """Keep an outcome."""
        self.outcomes.append(outcome)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(outcome.model_dump_json() + "\n")
            file.flush()
            os.fsync(file.fileno())


def measure(
    todo: Sequence[Job],
    contestants: Sequence[Contestant],
    plan: Plan,
    judge: ModelPair,
    meter: EnergyMeter,
) -> Iterator[Outcome]:
    """The outcome of each job, as it comes; each contestant is warmed up before it is first measured.

    Args:
        judge: its target says how probable texts are.
    """
    by_name = {one.name: one for one in contestants}
    warm: set[str] = set()
    for prompt, seed, name in todo:
        one = by_name[name]
        if name not in warm:
            one.attempt(plan.prompts[prompt].text, seed)
            warm.add(name)
        yield _outcome(one, prompt, seed, plan, judge, meter)


def _outcome(one: Contestant, prompt: int, seed: int, plan: Plan, judge: ModelPair, meter: EnergyMeter) -> Outcome:
    text = plan.prompts[prompt].text
    on_gpu = judge.target.model.device.type == "cuda"
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    with meter.span() as span:
        started = time.perf_counter()
        attempt = one.attempt(text, seed)
        seconds = time.perf_counter() - started
    ids = prepare_prompt(judge, text, plan.settings).token_ids
    return Outcome(
        contestant=one.name,
        prompt=prompt,
        seed=seed,
        tokens=tuple(attempt.tokens),
        seconds=seconds,
        first_token_seconds=attempt.first_token_seconds,
        target_passes=attempt.target.passes,
        target_tokens=attempt.target.tokens,
        target_seconds=attempt.target.seconds,
        draft_passes=attempt.draft.passes,
        draft_tokens=attempt.draft.tokens,
        draft_seconds=attempt.draft.seconds,
        drafted=attempt.drafted,
        accepted=attempt.accepted,
        log_p=log_likelihood(judge.target, ids, attempt.tokens),
        joules=span.joules,
        peak_bytes=torch.cuda.max_memory_allocated() if on_gpu else None,
    )


def log_likelihood(model: LanguageModel, prompt: Sequence[int], tokens: Sequence[int]) -> float:
    """Σ log p of `tokens` after `prompt` under the unwarped model, from one forward pass without a cache."""
    ids = torch.tensor([[*prompt, *tokens]], device=model.model.device)
    with torch.inference_mode():
        logits = model.model(ids, use_cache=False, logits_to_keep=len(tokens) + 1).logits[0, :-1, : model.vocabulary]
    log_laws = logits.float().log_softmax(-1)
    return float(log_laws.gather(-1, ids[0, len(prompt) :, None]).double().sum())
