"""What the bench writes down: one outcome for each run, and with them what they were made with."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from decoding.bench.prompts import BenchPrompt
from decoding.bench.roofline import Rates
from decoding.settings import DecodingSettings
from decoding.trace import ModelInfo

MAX_OUTCOMES = 200_000


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Outcome(_Record):
    """One run of a contestant on a prompt.

    Attributes:
        prompt: its index among the bench's prompts.
        tokens: the emitted ids.
        seconds: of the whole call, the prompt's pass included.
        first_token_seconds: from the call to the first emitted token.
        target_passes, target_tokens, target_seconds: forward passes after the prompt's, tokens fed in them, and their time;
            a peer's pass over the prompt, which emits its first token, is among them. The same for the draft.
        drafted, accepted: tokens of the chosen blocks; None where nothing is drafted, or where a peer does not say.
        log_p: Σ log p of the emitted tokens under the plain target, from one forward pass over the whole text.
        joules: None where no counter measures them.
        peak_bytes: most GPU memory during the run; None on a CPU.
    """

    contestant: str
    prompt: int = Field(ge=0)
    seed: int
    tokens: tuple[int, ...]
    seconds: float = Field(gt=0)
    first_token_seconds: float = Field(ge=0)
    target_passes: int = Field(ge=0)
    target_tokens: int = Field(ge=0)
    target_seconds: float = Field(ge=0)
    draft_passes: int = Field(ge=0)
    draft_tokens: int = Field(ge=0)
    draft_seconds: float = Field(ge=0)
    drafted: int | None = Field(ge=0)
    accepted: int | None = Field(ge=0)
    log_p: float = Field(le=1e-3)
    joules: float | None = Field(ge=0)
    peak_bytes: int | None = Field(ge=0)


class Machine(_Record):
    """Where and when a bench ran."""

    date: str
    processor: str
    cores: int
    threads: int
    device: str
    python: str
    torch: str
    transformers: str
    processes: int = 1
    peak_rss_bytes: int | None = None


class Plan(_Record):
    """All that decides what a bench's texts are.

    Attributes:
        contestants: as on the command line.
        target, draft: the models that our own lanes run.
        plain_dtype: of the models that the peers run, and of the target that judges perplexity.
    """

    contestants: tuple[str, ...] = Field(min_length=1, max_length=100)
    prompts: tuple[BenchPrompt, ...] = Field(min_length=1, max_length=10_000)
    seeds: tuple[int, ...] = Field(min_length=1, max_length=1000)
    settings: DecodingSettings
    target: ModelInfo
    draft: ModelInfo | None
    plain_dtype: str


class Bench(_Record):
    """A finished bench, as its file holds it.

    Attributes:
        titles: of the contestants, in their order.
        weight_bytes: of a model's weights as our lanes read them in a pass; by "target" and "draft".
    """

    format: Literal["decoding-bench/1"] = "decoding-bench/1"
    plan: Plan
    titles: tuple[str, ...]
    machine: Machine
    rates: Rates | None
    weight_bytes: dict[Literal["target", "draft"], int]
    outcomes: tuple[Outcome, ...] = Field(max_length=MAX_OUTCOMES)
