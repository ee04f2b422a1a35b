"""The trace: one run, as data. What the page shows, what files hold, what tests compare.

Everything in a trace was computed by the run itself. Log-probabilities are natural; −∞ is null in JSON. A file is
untrusted: unknown keys, NaN, ids out of range, broken references and sizes beyond the limits are refused.
"""

import math
from collections.abc import Iterable
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, model_validator

from decoding.settings import DecodingSettings

MAX_TOKENS = 1024  # of a run
MAX_STEPS = MAX_TOKENS
MAX_NODES = 512  # of one step's draft
MAX_PROMPT_TOKENS = 32_768
MAX_TEXT = 1_000_000
ROUNDING = 1e-3  # a log-probability may exceed 0 by this much: float32 sums

Origin = Literal["sampled", "accepted", "resampled", "bonus", "forced"]
FinishReason = Literal["eos", "stop", "length", "cancelled"]

TokenId = Annotated[int, Field(ge=0, lt=2**31)]
Probability = Annotated[float, Field(ge=0, le=1 + ROUNDING, allow_inf_nan=False)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0, lt=2**53)]


def _from_null(value: Any) -> Any:
    return -math.inf if value is None else value


def _to_null(value: float | None) -> float | None:
    return None if value == -math.inf else value


LogProb = Annotated[float, Field(le=ROUNDING), BeforeValidator(_from_null), PlainSerializer(_to_null)]
ScoredLogProb = Annotated[float | None, Field(le=ROUNDING), PlainSerializer(_to_null)]


class Record(BaseModel):
    """Immutable, and closed to unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Node(Record):
    """A token of the draft: one node of its tree.

    Attributes:
        parent: index of the node before it in the step's `nodes`; None at depth 1.
        log_q, joint_log_q: log q̃(token | path) and its sum along the path, under the law the draft was made from.
        scored: whether the target scored this node; if not, `log_p` and `joint_log_p` are None because they are unknown.
        log_p, joint_log_p: the same under the target's law; −∞ (null in JSON) outside its support.
        alive: whether a beam that reached the end of drafting runs through this node.
    """

    parent: Count | None
    depth: Annotated[int, Field(ge=1, le=64)]
    token: TokenId
    log_q: LogProb
    joint_log_q: LogProb
    scored: bool
    log_p: ScoredLogProb
    joint_log_p: ScoredLogProb
    alive: bool

    @model_validator(mode="before")
    @classmethod
    def _null_of_a_scored_node_is_minus_infinity(cls, data: Any) -> Any:
        if isinstance(data, dict) and data.get("scored") is True:
            return data | {key: _from_null(data[key]) for key in ("log_p", "joint_log_p") if key in data}
        return data

    @model_validator(mode="after")
    def _unscored_nodes_have_no_p(self) -> Self:
        if not self.scored and (self.log_p is not None or self.joint_log_p is not None):
            raise ValueError("a node that was not scored cannot have a log_p")
        return self


class Draft(Record):
    """The drafted tree, and the path that was put forward: node indices, first to last."""

    nodes: tuple[Node, ...] = Field(max_length=MAX_NODES)
    chosen: tuple[Count, ...] = Field(max_length=64)

    @model_validator(mode="after")
    def _is_a_tree(self) -> Self:
        for index, node in enumerate(self.nodes):
            if node.parent is not None and node.parent >= index:
                raise ValueError(f"node {index} has parent {node.parent}: a parent comes before its children")
            if node.depth != (1 if node.parent is None else self.nodes[node.parent].depth + 1):
                raise ValueError(f"node {index} is at depth {node.depth}, which is not one below its parent")
        before = None
        for index in self.chosen:
            if index >= len(self.nodes) or self.nodes[index].parent != before:
                raise ValueError("the chosen nodes are not a path from the root")
            before = index
        return self


class BlockSearch(Record):
    """What an exact search for the most probable blocks found (MTJD); all it scored stands in the step's draft.

    Attributes:
        blocks: indices of the nodes that the blocks end in, best first.
        proven: how many of them are exactly the best of all blocks.
        bound: no block but the proven ones has a larger joint log-probability.
        evaluations: prefixes scored, the empty one included.
    """

    blocks: tuple[Count, ...] = Field(min_length=1, max_length=64)
    proven: Count
    bound: LogProb
    evaluations: Count


class Verdict(Record):
    """What the method's rule said about one depth of the chosen block.

    Attributes:
        log_p, log_q, joint_log_p, joint_log_q: under the laws the rule compares; where a tree is verified, joint_log_q is
            the largest of any node at this depth.
        uniform: the draw that p/q was compared with (speculative decoding); None if there was none.
        threshold: the τ that the joint ratio was compared with (MTAD); None if there was none.
        passes: whether the rule holds at this depth.
        accepted: whether the token was kept (a deeper prefix that passes keeps a shallower one that does not).
    """

    depth: Annotated[int, Field(ge=1, le=64)]
    token: TokenId
    log_p: LogProb
    log_q: LogProb
    joint_log_p: LogProb
    joint_log_q: LogProb
    uniform: Annotated[float, Field(ge=0, lt=1)] | None
    threshold: Annotated[float, Field(gt=0, le=1)] | None
    passes: bool
    accepted: bool


class Emitted(Record):
    """A token of the result, where it came from, and its log-probability under the unwarped target."""

    token: TokenId
    origin: Origin
    log_p: LogProb


class Candidate(Record):
    """One token of a law: probability under the target and, where the draft was asked, under the draft."""

    token: TokenId
    p: Probability
    p_warped: Probability
    q: Probability | None
    q_warped: Probability | None


class Choice(Record):
    """The laws that an emitted token was taken from: their most probable tokens, and entropies in nats, unwarped."""

    top: tuple[Candidate, ...] = Field(max_length=64)
    entropy_p: Amount
    entropy_q: Amount | None


class Cost(Record):
    """What a step used: forward passes, tokens fed in them, and wall-clock seconds, device-synchronised.

    `seconds` covers the whole step; what is left after the two models' seconds is spent on rules and records.
    """

    target_passes: Count
    target_tokens: Count
    draft_passes: Count
    draft_tokens: Count
    target_seconds: Amount
    draft_seconds: Amount
    seconds: Amount
    joules: Amount | None


class Step(Record):
    """One round of a method: what was drafted, judged and emitted. `start` tokens had been emitted before it.

    A run that was given its first tokens begins with a step that holds them: it drafts and costs nothing.
    """

    index: Count
    start: Count
    draft: Draft | None
    verdicts: tuple[Verdict, ...] = Field(max_length=64)
    emitted: tuple[Emitted, ...] = Field(max_length=MAX_TOKENS)
    discarded: tuple[TokenId, ...] = Field(max_length=MAX_TOKENS)
    choices: tuple[Choice, ...] = Field(max_length=MAX_TOKENS)
    search: BlockSearch | None = None
    cost: Cost

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        if len(self.choices) != len(self.emitted):
            raise ValueError(f"step {self.index} has {len(self.emitted)} tokens but {len(self.choices)} choices")
        if self.verdicts:
            chosen = [self.draft.nodes[i].token for i in self.draft.chosen] if self.draft else []
            if [verdict.token for verdict in self.verdicts] != chosen:
                raise ValueError(f"step {self.index} has verdicts that are not about its chosen block")
        if self.search and not (self.draft and max(self.search.blocks) < len(self.draft.nodes)):
            raise ValueError(f"step {self.index} found blocks that are not in its draft")
        return self

    def token_ids(self) -> set[int]:
        """Every token id that occurs in this step."""
        ids = {emitted.token for emitted in self.emitted} | set(self.discarded)
        ids |= {candidate.token for choice in self.choices for candidate in choice.top}
        return ids | ({node.token for node in self.draft.nodes} if self.draft else set())


class ModelInfo(Record):
    """Which model it was. `parameters` and `vocabulary` are counts; `dtype` and `device` say how it was run."""

    name: Annotated[str, Field(max_length=500)]
    source: Annotated[str, Field(max_length=500)]
    parameters: Count
    vocabulary: Annotated[int, Field(gt=0, lt=2**31)]
    dtype: Annotated[str, Field(max_length=100)]
    device: Annotated[str, Field(max_length=200)]


class Prompt(Record):
    """The prompt as typed, and as fed (chat template applied)."""

    text: Annotated[str, Field(max_length=MAX_TEXT)]
    token_ids: tuple[TokenId, ...] = Field(min_length=1, max_length=MAX_PROMPT_TOKENS)


class DepthAcceptance(Record):
    """How many chosen blocks reached this depth, and how many of these tokens were kept."""

    depth: Annotated[int, Field(ge=1, le=64)]
    drafted: Count
    accepted: Count


class Metrics(Record):
    """Figures of a run; prefill is apart. None means that there is nothing to take the figure of.

    Attributes:
        tokens_per_target_pass: decoded tokens / target passes (block efficiency); forced tokens are not decoded.
        acceptance_rate: kept / drafted tokens of the chosen blocks.
        perplexity: exp(−mean log p) of the emitted tokens under the unwarped target.
        distinct_1, distinct_2, distinct_3: different n-grams / n-grams of the emitted tokens.
        joules: None where no counter can measure them.
    """

    tokens: Count
    target_passes: Count
    draft_passes: Count
    tokens_per_target_pass: Amount | None
    drafted: Count
    accepted: Count
    acceptance_rate: Probability | None
    acceptance_by_depth: tuple[DepthAcceptance, ...] = Field(max_length=64)
    perplexity: Amount | None
    distinct_1: Probability | None
    distinct_2: Probability | None
    distinct_3: Probability | None
    seconds: Amount
    target_seconds: Amount
    draft_seconds: Amount
    prefill_seconds: Amount
    tokens_per_second: Amount | None
    joules: Amount | None


class Result(Record):
    """The emitted tokens, their text without special tokens, why the run ended, and its figures."""

    token_ids: tuple[TokenId, ...] = Field(max_length=MAX_TOKENS)
    text: Annotated[str, Field(max_length=MAX_TEXT)]
    finish_reason: FinishReason
    metrics: Metrics


class Trace(Record):
    """One run, whole.

    Attributes:
        tokens: the surface form of every token id that occurs in it.
        special_ids: those of them that are no text, such as the end of a turn.
        eos_ids: the tokens that end a text of this target.
    """

    format: Literal["decoding-trace/1"] = "decoding-trace/1"
    method: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
    target: ModelInfo
    draft: ModelInfo | None
    prompt: Prompt
    settings: DecodingSettings
    tokens: dict[TokenId, Annotated[str, Field(max_length=1000)]] = Field(max_length=100_000)
    special_ids: tuple[TokenId, ...] = Field(max_length=1000)
    eos_ids: tuple[TokenId, ...] = Field(max_length=100)
    steps: tuple[Step, ...] = Field(max_length=MAX_STEPS)
    result: Result

    @property
    def forced(self) -> tuple[int, ...]:
        """The tokens that the run was given to begin with."""
        return forced_tokens(self.steps)

    @model_validator(mode="after")
    def _is_one_run(self) -> Self:
        emitted: list[int] = []
        for index, step in enumerate(self.steps):
            if (step.index, step.start) != (index, len(emitted)):
                raise ValueError(f"step {index} does not follow the one before it")
            emitted += [token.token for token in step.emitted]
        if tuple(emitted) != self.result.token_ids:
            raise ValueError("the steps do not add up to the result's token ids")
        ids = occurring_ids(self.prompt, self.steps)
        if missing := ids - self.tokens.keys():
            raise ValueError(f"token {min(missing)} occurs but has no text in `tokens`")
        if max(ids) >= self.target.vocabulary:
            raise ValueError(f"token {max(ids)} is beyond the target's vocabulary of {self.target.vocabulary}")
        return self


def forced_tokens(steps: Iterable[Step]) -> tuple[int, ...]:
    """The tokens of the steps that were given, not decoded."""
    return tuple(token.token for step in steps for token in step.emitted if token.origin == "forced")


def occurring_ids(prompt: Prompt, steps: Iterable[Step]) -> set[int]:
    """Every token id in the prompt and the steps."""
    return set(prompt.token_ids).union(*(step.token_ids() for step in steps))
