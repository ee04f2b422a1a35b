"""What a contestant hands back from one run, and how the passes of models that are not ours are counted."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from decoding.context import Spent


@dataclass(frozen=True)
class Attempt:
    """One run of a contestant; see `record.Outcome` for what the figures mean."""

    tokens: list[int]
    first_token_seconds: float
    target: Spent
    draft: Spent = field(default_factory=Spent)
    drafted: int | None = None
    accepted: int | None = None


@dataclass
class Counter:
    """The forward passes of a model while it is watched."""

    spent: Spent = field(default_factory=Spent)
    _started: float = 0.0

    def before(self, _module: nn.Module, _args: Any, _kwargs: Any) -> None:
        """Hook that is called as a pass begins."""
        self._started = time.perf_counter()

    def after(self, _module: nn.Module, args: Any, kwargs: Any, _output: Any) -> None:
        """Hook that is called as a pass ends."""
        ids = kwargs["input_ids"] if "input_ids" in kwargs else args[0]
        self.spent += Spent(1, ids.numel(), time.perf_counter() - self._started)


@contextmanager
def counted(model: nn.Module) -> Iterator[Counter]:
    """Count a model's forward passes."""
    counter = Counter()
    hooks = [
        model.register_forward_pre_hook(counter.before, with_kwargs=True),
        model.register_forward_hook(counter.after, with_kwargs=True),
    ]
    try:
        yield counter
    finally:
        for hook in hooks:
            hook.remove()
