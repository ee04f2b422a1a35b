"""Each outcome of each method in words, with numbers that can be checked by hand."""

from math import exp, inf, log

import pytest

from app.step_words import Telling, words
from decoding.methods import METHODS
from decoding.settings import DecodingSettings
from decoding.trace import Candidate, Choice, Cost, Draft, Emitted, Node, Step, Verdict
from tests.app.toy_steps import GOLDEN_P, GOLDEN_Q, play, settings

WORDS = ["·the", "·sky", "·is", "·blue", "·and", "·wide", "·red", "<end>"]
END = 7
NOTHING_SPENT = Cost(
    target_passes=1,
    target_tokens=1,
    draft_passes=0,
    draft_tokens=0,
    target_seconds=0,
    draft_seconds=0,
    seconds=0,
    joules=None,
)


def tell(step: Step, method: str, **changes: object) -> str:
    chosen = DecodingSettings.model_validate({"max_new_tokens": 64} | changes)
    return words(step, Telling(method, chosen, WORDS.__getitem__, frozenset({END})))


def logarithm(value: float) -> float:
    return log(value) if value else -inf


def make_step(
    p=(), q=(), emitted=(), *, uniforms=None, threshold=None, kept=0, block=(1, 2, 3, 4), discarded=()
) -> Step:
    """A step whose block has these conditional probabilities; emitted are (token, origin), each with p̃ = p = 1/4."""
    verdicts, joint_p, joint_q = [], 0.0, 0.0
    for i, (one_p, one_q) in enumerate(zip(p, q, strict=True)):
        joint_p, joint_q = joint_p + logarithm(one_p), joint_q + logarithm(one_q)
        uniform = uniforms[i] if uniforms else None
        verdict = Verdict(
            depth=i + 1,
            token=block[i],
            log_p=logarithm(one_p),
            log_q=logarithm(one_q),
            joint_log_p=joint_p,
            joint_log_q=joint_q,
            uniform=uniform,
            threshold=threshold,
            passes=joint_p - joint_q > log(threshold) if threshold else i < kept,
            accepted=i < kept,
        )
        verdicts.append(verdict)
    nodes = [
        Node(
            parent=i - 1 if i else None,
            alive=True,
            scored=True,
            **{key: getattr(v, key) for key in ("depth", "token", "log_q", "joint_log_q", "log_p", "joint_log_p")},
        )
        for i, v in enumerate(verdicts)
    ]
    return Step(
        index=0,
        start=0,
        draft=Draft(nodes=tuple(nodes), chosen=tuple(range(len(nodes)))) if nodes else None,
        verdicts=tuple(verdicts),
        emitted=tuple(Emitted(token=token, origin=origin, log_p=log(0.25)) for token, origin in emitted),
        discarded=tuple(discarded),
        choices=tuple(choice(token) for token, _ in emitted),
        cost=NOTHING_SPENT,
    )


def choice(token: int) -> Choice:
    only = Candidate(token=token, p=0.25, p_warped=0.25, q=None, q_warped=None)
    return Choice(top=(only,), entropy_p=1.0, entropy_q=None)


def accepted(*tokens: int) -> list[tuple[int, str]]:
    return [(token, "accepted") for token in tokens]


def mtad(p, q, kept, emitted, **more) -> Step:
    return make_step(p, q, emitted, threshold=0.5, kept=kept, **more)


def typical(p, kept, emitted, **more) -> Step:
    """Under laws where 0.3 is asked at every depth."""
    step = make_step(p, HALF[: len(p)], emitted, kept=kept, **more)
    verdicts = [
        verdict.model_copy(update={"threshold": 0.3, "passes": exp(verdict.log_p) > 0.3}) for verdict in step.verdicts
    ]
    return step.model_copy(update={"verdicts": tuple(verdicts)})


FOUR = ([0.5, 0.5, 0.5, 0.5], [0.5, 0.5, 0.5, 0.625])
HALF, FULL = [0.5] * 4, [1.0] * 4


@pytest.mark.parametrize(
    ("method", "step", "changes", "told"),
    [
        (
            "single_token",
            make_step(emitted=[(1, "sampled")]),
            {},
            "“·sky” was drawn from the target's law, where it has p̃ = 0.25.",
        ),
        (
            "single_token",
            make_step(emitted=[(1, "sampled")]),
            {"temperature": 0},
            "“·sky” is the target's most probable token (p = 0.25).",
        ),
        (
            "single_token",
            make_step(emitted=[(END, "sampled")]),
            {},
            "“<end>” was drawn from the target's law, where it has p̃ = 0.25. “<end>” ends the text.",
        ),
        (
            "speculative",
            make_step([0.1, *HALF[1:]], HALF, [(6, "resampled")], uniforms=[0.63, None, None, None]),
            {},
            "4 tokens drafted, none kept. “·sky” at depth 1 was refused: the draw u = 0.63 was not below p/q = 0.2. "
            "“·red” comes in its place, drawn from what p̃ has above q̃ (p̃ = 0.25).",
        ),
        (
            "speculative",
            make_step(
                [0.5, 0.5, 0.25, 0.5],
                HALF,
                [*accepted(1, 2), (6, "resampled")],
                uniforms=[0.1, 0.2, 0.50001, None],
                kept=2,
            ),
            {},
            "4 tokens drafted, 2 kept. “·blue” at depth 3 was refused: the draw u = 0.50001 was not below p/q = 0.5. "
            "“·red” comes in its place, drawn from what p̃ has above q̃ (p̃ = 0.25).",
        ),
        (
            "speculative",
            make_step([0.0, *HALF[1:]], HALF, [(6, "resampled")], uniforms=[0.63, None, None, None]),
            {},
            "4 tokens drafted, none kept. “·sky” at depth 1 was refused: the target's law gives it p = 0. "
            "“·red” comes in its place, drawn from what p̃ has above q̃ (p̃ = 0.25).",
        ),
        (
            "speculative",
            make_step([0.0, 0.0, 0.0, 0.0], FULL, [(6, "resampled")], uniforms=[0.63, None, None, None]),
            {"temperature": 0},
            "4 tokens drafted, none kept. “·sky” at depth 1 was refused: it is not the target's most probable token. "
            "“·red” comes in its place: it is the target's most probable token (p = 0.25).",
        ),
        (
            "speculative",
            make_step(HALF, HALF, [*accepted(1, 2, 3, 4), (5, "bonus")], uniforms=[0.1, 0.2, 0.3, 0.4], kept=4),
            {},
            "All 4 tokens drafted and kept: at every depth the draw u was below p/q. "
            "“·wide” comes on top, drawn from the target's law (p̃ = 0.25).",
        ),
        (
            "speculative",
            make_step(FULL, FULL, [*accepted(1, 2, 3, 4), (5, "bonus")], uniforms=[0.1, 0.2, 0.3, 0.4], kept=4),
            {"temperature": 0},
            "All 4 tokens drafted and kept: each is the target's most probable token. "
            "“·wide” comes on top: it is the target's most probable token (p = 0.25).",
        ),
        (
            "speculative",
            make_step([0.3], [0.5], [*accepted(1), (5, "bonus")], uniforms=[0.1], kept=1),
            {},
            "1 token drafted and kept: the draw u = 0.1 was below p/q = 0.6. "
            "“·wide” comes on top, drawn from the target's law (p̃ = 0.25).",
        ),
        (
            "speculative",
            make_step([0.5, 0.5], [0.5, 0.5], accepted(1, END), uniforms=[0.1, 0.2], kept=2, block=(1, END)),
            {},
            "Both tokens drafted and kept: at every depth the draw u was below p/q. “<end>” ends the text.",
        ),
        (
            "speculative",
            make_step(HALF, HALF, accepted(1, 2), uniforms=[0.1] * 4, kept=4, discarded=[3, 4, 5]),
            {"max_new_tokens": 2},
            "All 4 tokens drafted and kept: at every depth the draw u was below p/q. "
            "The limit of 2 tokens is reached; 3 tokens behind it discarded.",
        ),
        (
            "speculative",
            make_step(HALF, HALF, accepted(1, 2), uniforms=[0.1] * 4, kept=4, discarded=[3]),
            {},
            "All 4 tokens drafted and kept: at every depth the draw u was below p/q. "
            "A stop string appeared; 1 token behind it discarded.",
        ),
        (
            "typical",
            typical([0.5, 0.2, 0.5, 0.5], 1, [*accepted(1), (6, "sampled")]),
            {},
            "4 tokens drafted, 1 kept. “·is” at depth 2 was dropped: p̃ = 0.2 is not above the bar of 0.3 there. "
            "“·red” comes next, drawn from the target's law (p̃ = 0.25).",
        ),
        (
            "typical",
            typical([0.0, 0.5], 0, [(6, "sampled")]),
            {"temperature": 0},
            "2 tokens drafted, none kept. “·sky” at depth 1 was dropped: p̃ = 0 is not above the bar of 0.3 there. "
            "“·red” comes next: it is the target's most probable token (p = 0.25).",
        ),
        (
            "typical",
            typical([0.5, 0.4], 2, [*accepted(1, 2), (6, "bonus")]),
            {},
            "Both tokens drafted and kept: each is likelier under the target than is asked there. "
            "“·red” comes on top, drawn from the target's law (p̃ = 0.25).",
        ),
        (
            "typical",
            typical([0.31], 1, accepted(END), block=(END,)),
            {},
            "1 token drafted and kept: p̃ = 0.31 > the bar of 0.3 there. “<end>” ends the text.",
        ),
        (
            "mtad",
            mtad([0.1, 0.5, 0.5, 0.5], HALF, 0, [(6, "sampled")]),
            {},
            "4 tokens drafted, none kept: the largest ratio of any prefix, at depth 1, is P/Q = 0.2, not above τ = 0.5. "
            "“·red” comes next, drawn from the target's law (p̃ = 0.25).",
        ),
        (
            "mtad",
            mtad([0.1], [0.5], 0, [(6, "sampled")]),
            {},
            "1 token drafted, none kept: its ratio is P/Q = 0.2, not above τ = 0.5. "
            "“·red” comes next, drawn from the target's law (p̃ = 0.25).",
        ),
        (
            "mtad",
            mtad([0.0, 0.5, 0.5, 0.5], HALF, 0, [(6, "sampled")]),
            {},
            "4 tokens drafted, none kept: the target's law gives the first one p = 0, and so every prefix P = 0. "
            "“·red” comes next, drawn from the target's law (p̃ = 0.25).",
        ),
        (
            "mtad",
            mtad([0.5, 0.5, 0.5, 0.1], HALF, 3, [*accepted(1, 2, 3), (6, "sampled")]),
            {},
            "4 tokens drafted. The prefix of 3 is kept: P/Q = 1 > τ = 0.5; all 4 would give 0.2. "
            "“·red” comes next, drawn from the target's law (p̃ = 0.25).",
        ),
        (
            "mtad",
            mtad([0.5, 0.5, 0.1, 0.25], HALF, 2, [*accepted(1, 2), (6, "sampled")]),
            {},
            "4 tokens drafted. The prefix of 2 is kept: P/Q = 1 > τ = 0.5; longer ones give 0.2 at most. "
            "“·red” comes next, drawn from the target's law (p̃ = 0.25).",
        ),
        (
            "mtad",
            mtad([0.5, 0.5, 0.0, 0.25], HALF, 2, [*accepted(1, 2), (6, "sampled")]),
            {},
            "4 tokens drafted. The prefix of 2 is kept: P/Q = 1 > τ = 0.5; from depth 3 on the target's law gives P = 0. "
            "“·red” comes next, drawn from the target's law (p̃ = 0.25).",
        ),
        (
            "mtad",
            mtad([0.5, 0.5, 0.5, 0.5], FOUR[1], 4, [*accepted(1, 2, 3, 4), (5, "bonus")]),
            {},
            "All 4 tokens drafted and kept: P/Q = 0.8 > τ = 0.5. “·wide” comes on top, drawn from the target's law (p̃ = 0.25).",
        ),
        (
            "mtad",
            mtad([0.5, 0.5, 0.5, 0.5], FOUR[1], 4, [*accepted(1, 2, 3, 4), (5, "bonus")]),
            {"temperature": 0},
            "All 4 tokens drafted and kept: P/Q = 0.8 > τ = 0.5. “·wide” comes on top: it is the target's most probable token (p = 0.25).",
        ),
        (
            "mtad",
            mtad([0.5, 0.5], [0.5, 0.5], 2, accepted(1, END), block=(1, END)),
            {},
            "Both tokens drafted and kept: P/Q = 1 > τ = 0.5. “<end>” ends the text.",
        ),
        (
            "mtad",
            mtad(*FOUR, 4, accepted(1), discarded=[2, 3, 4, 5]),
            {"max_new_tokens": 1},
            "All 4 tokens drafted and kept: P/Q = 0.8 > τ = 0.5. The limit of 1 token is reached; 4 tokens behind it discarded.",
        ),
        (
            "mtad",
            mtad([0.5, 0.1, 0.5, 0.5], [0.5, 0.5, 0.125, 0.5], 4, [*accepted(1, 2, 3, 4), (5, "bonus")]),
            {},
            "All 4 tokens drafted and kept: P/Q = 0.8 > τ = 0.5. "
            "A rescue: the prefix of 2 fails alone (0.2), but the longer one passes. "
            "“·wide” comes on top, drawn from the target's law (p̃ = 0.25).",
        ),
    ],
)
def test_every_outcome_has_its_words(method: str, step: Step, changes: dict, told: str):
    assert tell(step, method, **changes) == told


def test_the_golden_rescue():
    step = play("mtad", GOLDEN_P, GOLDEN_Q, settings(threshold=0.05, draft_search="search"))[0]
    assert tell(step, "mtad").startswith(
        "All 4 tokens drafted and kept: P/Q = 0.075 > τ = 0.05. "
        "A rescue: the prefixes of 2 and 3 fail alone (0.0333 and 0.05), but the longer one passes. "
    )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_whatever_a_method_does_can_be_told(method: str, temperature: float):
    for seed in range(10):
        chosen = settings(temperature=temperature, seed=seed, top_k=3, threshold=0.3)
        for step in play(method, GOLDEN_P, GOLDEN_Q, chosen, frozenset({5})):
            told = tell(step, method, temperature=temperature)
            assert told.endswith((".", "discarded."))
            assert "nan" not in told and "inf" not in told
