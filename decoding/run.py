"""Run: one decoding in progress. What every method works on, and how its rounds become steps."""

import time
from collections.abc import Sequence

from torch import Tensor
from transformers import PreTrainedTokenizerBase

from decoding.context import Context, Spent
from decoding.settings import DecodingSettings
from decoding.streams import Streams
from decoding.surface import readable_text
from decoding.trace import BlockSearch, Choice, Cost, Draft, Emitted, FinishReason, Step, Verdict
from decoding.warp import warp


class Run:
    """Contexts, settings and randomness of one decoding, and the text so far.

    A method prefills, then repeats: `start_step`, draft and judge, `finish_step`, until `finish_reason` is set.

    Args:
        target, draft: empty contexts; a method that has no use for the draft leaves it alone.
        prompt: token ids, at least one.
        eos_ids: tokens that end the text.
        tokenizer: to find stop strings; needed only where the settings have some.
    """

    def __init__(
        self,
        target: Context,
        draft: Context | None,
        prompt: Sequence[int],
        settings: DecodingSettings,
        streams: Streams,
        eos_ids: frozenset[int] = frozenset(),
        tokenizer: PreTrainedTokenizerBase | None = None,
    ) -> None:
        self.target = target
        self._draft = draft
        self.settings = settings
        self.streams = streams
        self.eos_ids = eos_ids
        self.text = list(prompt)
        self.finish_reason: FinishReason | None = None
        self.prefill_seconds = 0.0
        self._prompt_length = len(prompt)
        self._tokenizer = tokenizer
        self._steps = 0
        self._started = 0.0
        self._spent_before: dict[str, Spent] = {}

    @property
    def draft(self) -> Context:
        """The draft model's context.

        Raises:
            ValueError: the run was given none.
        """
        if self._draft is None:
            raise ValueError("This method drafts: it needs a draft model beside the target.")
        return self._draft

    @property
    def emitted(self) -> list[int]:
        """The tokens emitted so far."""
        return self.text[self._prompt_length :]

    def warp(self, log_laws: Tensor) -> Tensor:
        """The settings' warp of (rows, vocabulary) log-laws."""
        return warp(log_laws, self.settings)

    def prefill(self, *contexts: Context) -> None:
        """Feed what there is but for its last token, which the first step feeds: so all steps are alike."""
        started = time.perf_counter()
        for context in contexts:
            if missing := self.pending(context)[:-1]:
                context.feed(missing)
        self.prefill_seconds += time.perf_counter() - started

    def pending(self, context: Context) -> list[int]:
        """The tokens of the text that a context has not been fed yet; its trunk is a prefix of the text."""
        return self.text[len(context.tokens) :]

    def start_step(self) -> None:
        """Start the clock and the pass counters of a step."""
        self._started = time.perf_counter()
        self._spent_before = self._spent()

    def finish_step(
        self,
        emitted: Sequence[Emitted],
        choices: Sequence[Choice],
        draft: Draft | None = None,
        verdicts: Sequence[Verdict] = (),
        search: BlockSearch | None = None,
    ) -> Step:
        """Append what a step emits to the text, up to the first token that ends it, and record the step.

        Sets `finish_reason` if the text ends here. What was decided after that point is recorded as discarded.
        """
        start = len(self.emitted)
        kept = self._append([token.token for token in emitted])
        step = Step(
            index=self._steps,
            start=start,
            draft=draft,
            verdicts=tuple(verdicts),
            emitted=tuple(emitted[:kept]),
            discarded=tuple(token.token for token in emitted[kept:]),
            choices=tuple(choices[:kept]),
            search=search,
            cost=self._cost(),
        )
        self._steps += 1
        return step

    def _append(self, tokens: Sequence[int]) -> int:
        for count, token in enumerate(tokens, start=1):
            self.text.append(token)
            self.finish_reason = self._reason_to_end()
            if self.finish_reason:
                return count
        return len(tokens)

    def _reason_to_end(self) -> FinishReason | None:
        emitted = self.emitted
        if emitted[-1] in self.eos_ids:
            return "eos"
        if self.settings.stop and self._tokenizer:
            written = readable_text(self._tokenizer, emitted)
            if any(stop in written for stop in self.settings.stop):
                return "stop"
        return "length" if len(emitted) >= self.settings.max_new_tokens else None

    def _spent(self) -> dict[str, Spent]:
        return {"target": self.target.spent, "draft": self._draft.spent if self._draft else Spent()}

    def _cost(self) -> Cost:
        spent = {model: after - self._spent_before[model] for model, after in self._spent().items()}
        return Cost(
            target_passes=spent["target"].passes,
            target_tokens=spent["target"].tokens,
            target_seconds=spent["target"].seconds,
            draft_passes=spent["draft"].passes,
            draft_tokens=spent["draft"].tokens,
            draft_seconds=spent["draft"].seconds,
            seconds=time.perf_counter() - self._started,
            joules=None,
        )
