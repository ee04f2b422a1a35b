"""On demand, for a step of MTAD: the most probable block there is, beside the one that the step judged."""

import logging
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from math import exp
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from app.explained import EXPLAINED, GONE, UNEXPECTED
from app.figures.text import Spell, number, shorten
from app.inspector import visible
from app.lanes import Spelling
from app.models import Models
from app.narration import count
from app.requests import check_same_prompt
from app.settings_form import InvalidSettings
from app.shelf import Shelf
from app.shown import preset_of
from app.surroundings import on_gpu
from decoding.gap import Gap, block_gap, compared_law
from decoding.pair import ModelPair
from decoding.prompting import check_vocabulary
from decoding.surface import surface
from decoding.trace import Trace, Verdict

LOG = logging.getLogger(__name__)
Answer = dict[str, Any]
NO_ANSWER: Answer = {"run": "", "lane": 0, "step": 0, "state": "done", "text": ""}
NO_SUCH_STEP = "There is no such step to search in."
SECONDS = 60  # most that a search may take on a shared GPU


class _Place(BaseModel):
    run: str = Field(max_length=100)
    lane: int = Field(ge=0)
    step: int = Field(ge=0)


class Searches:
    """Searches the targets of finished runs for their best blocks."""

    def __init__(self, models: Models, shelf: Shelf) -> None:
        self._models = models
        self._shelf = shelf
        self._search = _make_search(models)

    def answers(self, asked: Any) -> Iterator[Answer]:
        """What the page shows, as the search goes on; at last the answer, or why there is none.

        Args:
            asked: run, lane and step, counted from 0, as the page sends them.
        """
        try:
            place = _Place.model_validate(asked)
        except ValidationError:
            return
        answer = partial(_answer, place)
        try:
            yield from (answer("busy", text) for text in self._preparations(place))
            trace, preset = self._found(place)
            gap = next(self._search(preset, trace, place.step))
            spell = _spell(self._models.wanted({preset})[preset].result())
            yield answer("done", in_words(gap, judged(trace, place.step), spell))
        except EXPLAINED as error:
            yield answer("error", str(error))
        except Exception:
            LOG.exception("A search broke off")
            yield answer("error", UNEXPECTED)

    def _preparations(self, place: _Place) -> Iterator[str]:
        """What there is to wait for, after a check of all that can be checked by then."""
        trace, preset = self._found(place)
        loading = self._models.wanted({preset})[preset]
        if not loading.done():
            yield f"Loading {self._models.presets[preset].title} …"
        pair = loading.result()
        check_same_prompt(trace, pair)
        check_vocabulary(pair, trace.result.token_ids)
        yield "Searching …"

    def _found(self, place: _Place) -> tuple[Trace, str]:
        traces = self._shelf.traces(place.run)
        if traces is None:
            raise InvalidSettings(GONE)
        if place.lane >= len(traces) or not judged(traces[place.lane], place.step):
            raise InvalidSettings(NO_SUCH_STEP)
        trace = traces[place.lane]
        preset = preset_of(trace, self._models.presets)
        if preset is None:
            raise InvalidSettings(f"{trace.target.name} is not offered here: it cannot be searched.")
        return trace, preset


def judged(trace: Trace, step: int) -> Sequence[Verdict]:
    """The block that is compared with the best one: what a step of MTAD kept or, if that is nothing, all that it had drafted."""
    if trace.method != "mtad" or step >= len(trace.steps):
        return ()
    verdicts = trace.steps[step].verdicts
    return [verdict for verdict in verdicts if verdict.accepted] or verdicts


def in_words(gap: Gap, block: Sequence[Verdict], spell: Spell) -> str:
    """The answer in two or three sentences."""
    own = "kept" if block[0].accepted else "drafted"
    best = f"“{shorten(''.join(map(spell, gap.block)), 60)}” (P = {number(exp(gap.best))})"
    effort = f"{count(gap.evaluations, 'prefix', 'prefixes')} scored on the target"
    of = f"of {count(gap.length, 'token')}"
    if not gap.is_proven:
        return (
            f"{effort} and no end: the best block {of} found is {best}, and none exceeds P = {number(exp(gap.bound))}. "
            f"The {own} block has P = {number(exp(gap.own))}."
        )
    if gap.block == tuple(verdict.token for verdict in block):
        return f"The {own} block is the most probable one {of}: {best}. {effort} to prove it."
    times = number(exp(gap.nats))
    return (
        f"The most probable block {of} is {best}. The {own} one has P = {number(exp(gap.own))}: a gap of "
        f"{gap.nats:.2f} nats, {times} times less. {effort} to find it."
    )


def _answer(place: _Place, state: str, text: str) -> Answer:
    return {**place.model_dump(), "state": state, "text": text}


def _spell(pair: ModelPair) -> Spell:
    tokenizer = pair.target.tokenizer
    return visible(Spelling(partial(surface, tokenizer), frozenset(tokenizer.all_special_ids), pair.target.eos_ids))


def _make_search(models: Models) -> Callable[[str, Trace, int], Generator[Gap]]:
    """A generator of one item: from a pair's key, a trace and a step of it to the gap there."""

    @on_gpu(duration=lambda preset, trace, step: SECONDS)
    def search(preset: str, trace: Trace, step: int) -> Generator[Gap]:
        target = models.wanted({preset})[preset].result().target
        before = [token.token for earlier in trace.steps[:step] for token in earlier.emitted]
        yield block_gap(
            target.open(),
            [*trace.prompt.token_ids, *before],
            judged(trace, step),
            warp_law=compared_law(trace.settings),
            eos_ids=target.eos_ids,
        )

    return search
