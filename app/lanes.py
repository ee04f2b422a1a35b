"""What of a lane's run is shown: steps in, plain data out."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from math import exp
from typing import Any, Literal

from app import narration
from app.tokens import show_token
from decoding.lane import Lane, lane_titles
from decoding.methods import METHODS
from decoding.metrics import run_metrics
from decoding.trace import FinishReason, Metrics, Step

YARDSTICK = "single_token"

State = Literal["ready", "running", "finished", "stopped", "failed"]
Data = dict[str, Any]


@dataclass(frozen=True)
class Spelling:
    """How token ids are written: their surface, which of them are special tokens, and which end a text."""

    surface: Callable[[int], str]
    special: frozenset[int]
    eos: frozenset[int]


@dataclass
class LaneView:
    """A lane's steps so far, and their tokens ready to be shown.

    Refused tokens stand where they had been drafted: behind the kept part of their block.

    Attributes:
        models: the names of the models it runs on.
    """

    lane: Lane
    title: str
    models: str
    spelling: Spelling
    state: State = "ready"
    remark: str = ""
    steps: list[Step] = field(default_factory=list)
    _tokens: list[Data] = field(default_factory=list)
    _packed: str = ""
    _waiting: bytes = b""

    def add(self, step: Step) -> None:
        """Take in the next step."""
        self.state = "running"
        self.steps.append(step)
        refused = [verdict.token for verdict in step.verdicts if not verdict.accepted]
        for token in step.emitted:
            if token.origin != "accepted":
                self._show_refused(refused, step.index)
                refused = []
            parts, self._waiting = self._spell(token.token, self._waiting)
            shown = {
                "id": token.token,
                "origin": token.origin,
                "step": step.index,
                "parts": parts,
                "p": exp(token.log_p),
            }
            self._show(shown)
        self._show_refused(refused, step.index)

    def end(self, reason: FinishReason) -> None:
        """The run is over."""
        self.state = "stopped" if reason == "cancelled" else "finished"
        self.remark = narration.finish(reason, self.lane.settings)

    def fail(self, sentence: str) -> None:
        """The run broke; what it had written stays."""
        self.state = "failed"
        self.remark = sentence

    def data(self, yardstick: "LaneView | None" = None) -> Data:
        """What the page draws, JSON throughout; `yardstick` is the lane that speeds are compared with."""
        method, settings = self.lane.method, self.lane.settings
        metrics = run_metrics(self.steps, prefill_seconds=0.0)  # not shown
        return {
            "method": method,
            "title": self.title,
            "models": self.models,
            "how": narration.how(method, settings),
            "lossless": METHODS[method].lossless,
            "promise": narration.promise(method),
            "state": self.state,
            "remark": self.remark,
            "progress": min(1.0, metrics.tokens / settings.max_new_tokens),
            "tokens": list(self._tokens),
            "figures": figures(metrics),
            "speed": self._speed(yardstick),
        }

    def packed(self, yardstick: "LaneView | None" = None) -> Data:
        """`data` in two texts: the tokens, one line of JSON each, and the rest.

        As text it is cheap: gradio sends only what was added to it, and the browser does not look at every token again.
        """
        rest = self.data(yardstick)
        del rest["tokens"]
        return {"tokens": self._packed, "rest": _json(rest)}

    @property
    def over(self) -> bool:
        """Whether nothing more will come."""
        return self.state in {"finished", "stopped", "failed"}

    def _speed(self, yardstick: "LaneView | None") -> Data | None:
        if not yardstick or not self.over or not yardstick.over:
            return None
        alone = yardstick is self
        speed = narration.yardstick(self.steps) if alone else narration.speed(self.steps, yardstick.steps)
        return asdict(speed) if speed else None

    def _show_refused(self, refused: Sequence[int], step: int) -> None:
        waiting = self._waiting
        for token in refused:
            parts, waiting = self._spell(token, waiting)
            self._show({"id": token, "origin": "refused", "step": step, "parts": parts})

    def _show(self, token: Data) -> None:
        self._tokens.append(token)
        self._packed += _json(token) + "\n"

    def _spell(self, token: int, waiting: bytes) -> tuple[list, bytes]:
        surface = self.spelling.surface(token)
        if token in self.spelling.special:
            return [("special", surface)], waiting
        return show_token(surface, waiting)


def lane_views(lanes: Sequence[Lane], models: Sequence[str], spellings: Sequence[Spelling]) -> list[LaneView]:
    """Views of lanes that have not begun."""
    parts = zip(lanes, lane_titles(lanes), models, spellings, strict=True)
    return [LaneView(lane, title, names, spelling) for lane, title, names, spelling in parts]


def model_names(method: str, target: str, draft: str) -> str:
    """The models that a lane of this method runs on."""
    return f"{target} ⟵ {draft}" if METHODS[method].drafts else f"{target} alone"


def empty_race(lanes: Sequence[Lane]) -> Data:
    """Lanes before any race."""
    nothing = Spelling(str, frozenset(), frozenset())
    return race_data("", lane_views(lanes, [""] * len(lanes), [nothing] * len(lanes)))


def race_data(run: str, views: Sequence[LaneView]) -> Data:
    """All lanes, packed, and the id of their run, by which the page tells a new race from the next moment of this one."""
    yardstick = next((view for view in views if view.lane.method == YARDSTICK), None)
    return {"run": run, "lanes": [view.packed(yardstick) for view in views]}


def figures(metrics: Metrics) -> list[Data]:
    """The running figures of a lane: name, value, and what the name means."""
    energy = "not measured" if not metrics.joules else f"{metrics.joules:.1f} J"
    rows = [
        ("tokens", str(metrics.tokens), "tokens written so far"),
        ("target passes", str(metrics.target_passes), "forward passes of the target, prompt apart"),
        ("tokens / pass", _figure(metrics.tokens_per_target_pass, ".2f"), "tokens per target pass: block efficiency"),
        ("tokens / s", _figure(metrics.tokens_per_second, ".1f"), "tokens per second of this lane's own time"),
        ("time", f"{metrics.seconds:.1f} s", "seconds of this lane's own steps, prompt apart"),
        ("perplexity", _figure(metrics.perplexity, ".2f"), "of the text under the target: lower is likelier"),
        ("draft passes", str(metrics.draft_passes), "forward passes of the draft, prompt apart"),
        ("acceptance", _figure(metrics.acceptance_rate, ".0%"), "share of the drafted tokens that were kept"),
        ("energy", energy, "joules, where a counter can measure them"),
    ]
    return [{"name": name, "value": value, "meaning": meaning} for name, value, meaning in rows]


def _json(data: Data) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


def _figure(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)
