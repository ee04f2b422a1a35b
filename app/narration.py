"""A run, said in words."""

from collections.abc import Sequence
from dataclasses import dataclass

from decoding.methods import METHODS
from decoding.settings import DecodingSettings
from decoding.trace import FinishReason, Step

HOW = {
    "single_token": "The target writes alone, one token per pass.",
    "speculative": "The draft proposes {γ}; the target checks them in one pass and keeps each with probability p/q.",
    "mtad": "The draft's {b} propose a block of {γ}; the longest part whose joint P/Q exceeds {τ} is kept.",
    "mtad, tree": "The draft's {b} propose blocks of {γ}, all scored in one pass; the deepest part of any that exceeds {τ} is kept.",
    "mtjd": "The target is searched for its {m} of {γ}; one is drawn by its joint probability.",
    "mtjd, greedy": "The target is searched for its most probable block of {γ}, and that is written.",
    "typical": "The draft proposes {γ}; the target keeps each while it finds p̃ above min({τ}, √{τ} · e^−H), H its entropy there.",
}
LOSSLESS = "Lossless: its texts follow exactly the target's law."
LOSSY = {
    "mtad": "Not lossless: it favours blocks that are likely as a whole, so its texts differ from the target's law.",
    "mtjd": "Not lossless: it writes blocks that are likely as a whole, so its texts differ from the target's law.",
    "typical": "Not lossless: what is likely enough is kept, however often the draft proposes it.",
}


def how(method: str, settings: DecodingSettings) -> str:
    """What the method does with these settings, in a sentence."""
    words = {
        "γ": count(settings.draft_length, "token"),
        "b": count(settings.beam_width, "beam"),
        "τ": f"{settings.threshold:g}",
        "m": count(settings.best_blocks, "most probable block"),
    }
    return HOW.get(_variant(method, settings), METHODS[method].title + ".").format(**words)


def _variant(method: str, settings: DecodingSettings) -> str:
    if method == "mtad" and settings.tree_verification:
        return "mtad, tree"
    return "mtjd, greedy" if method == "mtjd" and not settings.temperature else method


def promise(method: str) -> str:
    """Whether the method keeps the target's law, in a sentence."""
    return LOSSLESS if METHODS[method].lossless else LOSSY[method]


def finish(reason: FinishReason, settings: DecodingSettings) -> str:
    """Why a run ended."""
    match reason:
        case "eos":
            return "Finished: the model ended its text."
        case "stop":
            return "Finished: a stop string appeared."
        case "length":
            return f"Finished: the limit of {count(settings.max_new_tokens, 'token')} is reached."
        case "cancelled":
            return "Stopped before its end."


@dataclass(frozen=True)
class StepCost:
    """What a step of a lane costs and gives, on average. Seconds; passes and tokens are counts."""

    tokens: float
    draft_passes: float
    target_seconds: float
    draft_seconds: float
    other_seconds: float

    @property
    def seconds(self) -> float:
        """The whole step."""
        return self.target_seconds + self.draft_seconds + self.other_seconds

    @classmethod
    def of(cls, steps: Sequence[Step]) -> "StepCost | None":
        """The average of some steps; None of none, or where the clock was too coarse."""
        n = len(steps)
        seconds = sum(step.cost.seconds for step in steps)
        if not n or not seconds:
            return None
        target, draft = (sum(getattr(step.cost, f"{model}_seconds") for step in steps) for model in ("target", "draft"))
        return cls(
            tokens=sum(len(step.emitted) for step in steps) / n,
            draft_passes=sum(step.cost.draft_passes for step in steps) / n,
            target_seconds=target / n,
            draft_seconds=draft / n,
            other_seconds=max(0.0, seconds - target - draft) / n,
        )


@dataclass(frozen=True)
class Speed:
    """A verdict and its reason."""

    verdict: str
    reason: str


def speed(steps: Sequence[Step], single_token_steps: Sequence[Step]) -> Speed | None:
    """How fast a lane was against single-token sampling in the same race, and why; None where that cannot be said.

    A step's cost is counted in single-token steps, so that tokens per step / cost per step is the speed.
    """
    lane, single = StepCost.of(steps), StepCost.of(single_token_steps)
    if not lane or not single:
        return None
    unit = single.seconds / single.tokens
    ratio = lane.tokens / (lane.seconds / unit)
    return Speed(
        verdict=f"{ratio:.2f}× the speed of single-token sampling.",
        reason=f"A step writes {_number(lane.tokens)} tokens and costs as much as {lane.seconds / unit:.2f} single-token steps: "
        f"{lane.target_seconds / unit:.2f} for the target's pass, {lane.draft_seconds / unit:.2f} for "
        f"{_number(lane.draft_passes)} draft passes, {lane.other_seconds / unit:.2f} for rules and records.",
    )


def yardstick(steps: Sequence[Step]) -> Speed | None:
    """The single-token lane's own verdict."""
    cost = StepCost.of(steps)
    return Speed("The yardstick.", f"{1000 * cost.seconds:.0f} ms per token, one target pass each.") if cost else None


def count(number: int, noun: str, plural: str = "") -> str:
    """A number and its noun: "1 token", "4 tokens"."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def _number(value: float) -> str:
    return f"{value:.0f}" if value == round(value) else f"{value:.1f}"
