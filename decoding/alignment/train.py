"""Training: steps over stored conversations; a killed run goes on where it stood and ends with the same weights."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor
from tqdm.auto import trange
from transformers import PreTrainedModel

from decoding.alignment.data import FORCED, Conversations
from decoding.alignment.losses import LOSSES
from decoding.alignment.student import own_weights, set_own_weights

Observer = Callable[[PreTrainedModel], dict[str, float]]


@dataclass(frozen=True)
class TrainSettings:
    """What a run is a function of, beside its data and the student it starts from.

    Attributes:
        loss: name in LOSSES.
        hidden_weight: weight of the hidden-state regression that is added to it.
        steps: steps in all; the learning rate rises over `warmup` steps, then stays, and falls to zero over the last `cooldown` share.
        rows: conversations per step.
    """

    loss: str = "kl"
    hidden_weight: float = 1.0
    steps: int = 1000
    rows: int = 4
    learning_rate: float = 1e-3
    warmup: int = 40
    cooldown: float = 0.4
    seed: int = 0

    def rate_at(self, step: int) -> float:
        """Learning rate of a step, counted from 0."""
        rising = (step + 1) / self.warmup
        falling = (self.steps - step) / (self.cooldown * self.steps + 1)
        return self.learning_rate * min(1.0, rising, falling)


def rows_of_step(step: int, rows: int, of: int, seed: int) -> Tensor:
    """Which conversations a step reads: a new permutation of all of them every epoch."""
    per_epoch = max(of // rows, 1)
    epoch, place = divmod(step, per_epoch)
    order = torch.randperm(of, generator=torch.Generator().manual_seed(seed * 1_000_003 + epoch))
    return order[place * rows : (place + 1) * rows]


def step_loss(student: PreTrainedModel, batch: Conversations, settings: TrainSettings) -> Tensor:
    """Mean loss over the positions whose next token the target chose itself.

    The regression is 1 − cos between the last hidden states of draft and target; it has a signal in directions that
    the law of one position hardly depends on.
    """
    hidden = student.model(batch.tokens[:, :-1], use_cache=False).last_hidden_state
    chosen = batch.writers[:, 1:] != FORCED
    ours, theirs = student.lm_head.map(hidden[chosen]), batch.hidden[chosen].float()
    head = student.lm_head.among
    log_p = head(theirs) - batch.log_normaliser[chosen].unsqueeze(-1)
    law_loss = LOSSES[settings.loss](head(ours).log_softmax(-1), log_p)
    regression = 1 - torch.nn.functional.cosine_similarity(ours, theirs, dim=-1).mean()
    return law_loss + settings.hidden_weight * regression


def train(
    student: PreTrainedModel,
    data: Conversations,
    settings: TrainSettings,
    folder: Path,
    *,
    save_every: int = 50,
    observe: Observer | None = None,
    observe_every: int = 100,
) -> None:
    """Train `student` in place; `folder` takes the checkpoint and a log.

    Args:
        observe: figures to log at the start, every `observe_every` steps and at the end.
    """
    folder.mkdir(parents=True, exist_ok=True)
    student.train()
    weights = [weight for weight in student.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(weights, lr=settings.learning_rate, betas=(0.9, 0.95), weight_decay=0.01)
    first = _resume(student, optimizer, settings, folder)
    if observe and first == 0:
        _log(student, data, settings, observe, folder, 0)
    for step in trange(first, settings.steps, initial=first, total=settings.steps, desc="training"):
        batch = data.select(rows_of_step(step, settings.rows, len(data), settings.seed)).to(student.device)
        _step(student, batch, weights, optimizer, settings, step)
        done = step + 1
        if done % save_every == 0 or done == settings.steps:
            _save(student, optimizer, settings, done, folder)
        if observe and (done % observe_every == 0 or done == settings.steps):
            _log(student, data, settings, observe, folder, done)
    student.eval()


def _step(
    student: PreTrainedModel,
    batch: Conversations,
    weights: list[Tensor],
    optimizer: torch.optim.Optimizer,
    settings: TrainSettings,
    step: int,
) -> None:
    for group in optimizer.param_groups:
        group["lr"] = settings.rate_at(step)
    loss = step_loss(student, batch, settings)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(weights, 1.0)
    optimizer.step()


def checkpoint_path(folder: Path) -> Path:
    return folder / "checkpoint.pt"


def _save(
    student: PreTrainedModel, optimizer: torch.optim.Optimizer, settings: TrainSettings, done: int, folder: Path
) -> None:
    state = {
        "student": own_weights(student),
        "optimizer": optimizer.state_dict(),
        "done": done,
        "settings": asdict(settings),
    }
    partial = checkpoint_path(folder).with_suffix(".part")
    torch.save(state, partial)
    partial.replace(checkpoint_path(folder))


def _resume(student: PreTrainedModel, optimizer: torch.optim.Optimizer, settings: TrainSettings, folder: Path) -> int:
    """Take up the checkpoint, where there is one; how many steps are done."""
    if not checkpoint_path(folder).is_file():
        return 0
    state = torch.load(checkpoint_path(folder), weights_only=True, map_location=student.device)
    if state["settings"] != asdict(settings):
        raise ValueError(f"{folder} holds a run with other settings: {state['settings']}. Use another folder.")
    set_own_weights(student, state["student"])
    optimizer.load_state_dict(state["optimizer"])
    return int(state["done"])


def _log(
    student: PreTrainedModel, data: Conversations, settings: TrainSettings, observe: Observer, folder: Path, done: int
) -> None:
    student.eval()
    tokens = done * settings.rows * (data.tokens.shape[1] - 1)
    figures = {"step": done, "tokens": tokens, "conversations": len(data), **observe(student)}
    student.train()
    with (folder / "log.jsonl").open("a", encoding="utf-8") as log:
        log.write(json.dumps(figures) + "\n")
