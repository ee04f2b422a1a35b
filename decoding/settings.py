"""What a user may set for a run, with bounds."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

StopString = Annotated[str, Field(min_length=1, max_length=64)]


class DecodingSettings(BaseModel):
    """Settings of one run. A method ignores those it has no use for.

    `temperature`, `top_k` and `top_p` warp the laws of both models, in this order; temperature 0 is greedy decoding.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    temperature: float = Field(1.0, ge=0, le=5, description="0 is greedy decoding")
    top_k: int = Field(10, ge=0, le=1000, description="keep the k most probable tokens; 0 keeps all")
    top_p: float = Field(0.9, gt=0, le=1, description="keep the smallest set of tokens with this mass; 1 keeps all")
    draft_length: int = Field(4, ge=1, le=16, description="γ, tokens drafted per step")
    beam_width: int = Field(4, ge=1, le=16, description="b, beams of the draft (MTAD)")
    threshold: float = Field(
        0.5,
        gt=0,
        le=1,
        description="τ, least joint ratio P/Q of a kept prefix (MTAD), or of p itself (typical acceptance)",
    )
    draft_search: Literal["sampling", "search"] = Field(
        "sampling", description="how MTAD's beams are chosen: drawn without replacement, or the most probable"
    )
    tree_verification: bool = Field(
        False, description="MTAD verifies all its draft beams in one target pass, not only the most probable one"
    )
    best_blocks: int = Field(10, ge=1, le=64, description="m, most probable blocks that exact MTJD draws from")
    search_budget: int = Field(64, ge=16, le=400, description="most prefixes that exact MTJD scores in a step")
    max_new_tokens: int = Field(64, ge=1, le=1024, description="most tokens to emit")
    stop: tuple[StopString, ...] = Field((), max_length=8, description="texts that end the run where they first appear")
    seed: int = Field(0, ge=0, lt=2**53, description="the same seed gives the same run")
    chat: bool = Field(True, description="wrap the prompt in the model's chat template, where it has one")
