"""Decoding: one method on one prompt, step by step, and the trace of it."""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from decoding.context import Cancelled
from decoding.methods import METHODS
from decoding.methods.forced import forced as forced_steps
from decoding.metrics import run_metrics
from decoding.pair import ModelPair
from decoding.prompting import check_forced, prepare_prompt
from decoding.run import Run
from decoding.settings import DecodingSettings
from decoding.streams import Streams
from decoding.surface import readable_text, surface
from decoding.trace import Metrics, Result, Step, Trace, occurring_ids
from decoding.tree_mask import require_tree_mask


class Decoding(Iterator[Step]):
    """An iterator over the steps of one run; `trace()` is a valid trace of the steps so far at any time.

    Args:
        before_pass: called before every forward pass; raising `Cancelled` in it ends the run there.
        forced: token ids that the text begins with, whatever the method would have written.

    Raises:
        InvalidPrompt: the prompt or the forced tokens cannot be run on these models with these settings.
        ValueError: no such method, or it drafts and the pair has no draft.
        UnsupportedModel: the method has a model score a tree, and that model takes no mask for it.
    """

    def __init__(
        self,
        method: str,
        pair: ModelPair,
        prompt: str,
        settings: DecodingSettings,
        before_pass: Callable[[], None] = lambda: None,
        forced: Sequence[int] = (),
    ) -> None:
        if method not in METHODS:
            raise ValueError(f"There is no method '{method}'. Methods: {', '.join(METHODS)}.")
        if METHODS[method].drafts and pair.draft is None:
            raise ValueError(f"{METHODS[method].title} needs a draft model beside the target.")
        for role, purpose in METHODS[method].trees(settings).items():
            require_tree_mask(getattr(pair, role), role, purpose)
        self.method = method
        self.pair = pair
        self.settings = settings
        self.prompt = prepare_prompt(pair, prompt, settings)
        check_forced(pair, forced, settings)
        self.steps: list[Step] = []
        self._run = Run(
            target=pair.target.open(before_pass),
            draft=pair.draft.open(before_pass) if pair.draft and METHODS[method].drafts else None,
            prompt=self.prompt.token_ids,
            settings=settings,
            streams=Streams.seeded(settings.seed, method),
            eos_ids=pair.target.eos_ids,
            tokenizer=pair.target.tokenizer,
        )
        self._rounds = chain(forced_steps(self._run, forced), METHODS[method].steps(self._run))

    def __next__(self) -> Step:
        try:
            step = next(self._rounds)
        except Cancelled:
            raise StopIteration from None
        self.steps.append(step)
        return step

    @property
    def seconds(self) -> float:
        """Wall-clock seconds of the steps so far; prefill is apart."""
        return sum(step.cost.seconds for step in self.steps)

    @property
    def finished(self) -> bool:
        """Whether the text came to its end, rather than being stopped or still under way."""
        return self._run.finish_reason is not None

    def metrics(self) -> Metrics:
        """Figures of the steps so far."""
        return run_metrics(self.steps, self._run.prefill_seconds)

    def trace(self) -> Trace:
        """The steps so far as a trace; of a run that has not come to its end, a cancelled one."""
        tokenizer, emitted = self.pair.target.tokenizer, self._run.emitted
        ids = sorted(occurring_ids(self.prompt, self.steps))
        return Trace(
            method=self.method,
            target=self.pair.target.info,
            draft=self.pair.draft.info if self.pair.draft and METHODS[self.method].drafts else None,
            prompt=self.prompt,
            settings=self.settings,
            tokens={token: surface(tokenizer, token) for token in ids},
            special_ids=tuple(token for token in ids if token in tokenizer.all_special_ids),
            eos_ids=tuple(sorted(self.pair.target.eos_ids)),
            steps=tuple(self.steps),
            result=Result(
                token_ids=tuple(emitted),
                text=readable_text(tokenizer, emitted),
                finish_reason=self._run.finish_reason or "cancelled",
                metrics=self.metrics(),
            ),
        )


def decode(method: str, pair: ModelPair, prompt: str, settings: DecodingSettings) -> Trace:
    """Run a method to its end; see `Decoding` for the errors."""
    decoding = Decoding(method, pair, prompt, settings)
    for _ in decoding:
        pass
    return decoding.trace()
