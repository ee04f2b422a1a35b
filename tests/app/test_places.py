"""Places are found where they are, and what is said of them is what the trace has there."""

from math import exp

import pytest

from app.places import SIGHTS, Place, find
from app.telling_runs import fill
from decoding.lane import DEFAULT_METHODS
from decoding.trace import Prompt, Step, Trace
from tests.app.toy_steps import GOLDEN_P, GOLDEN_Q, play, settings

SURFACES = {token: f"<0x{token:02X}>" if token == 7 else f" t{token}" for token in range(8)}
RESCUE = settings(threshold=0.05, draft_search="search")
INFO = {"name": "toy", "source": "toy", "parameters": 8, "vocabulary": 8, "dtype": "float64", "device": "cpu"}


def trace_of(method: str, steps: list[Step], chosen=RESCUE) -> Trace:
    from decoding.metrics import run_metrics

    tokens = [token.token for step in steps for token in step.emitted]
    return Trace.model_validate(
        {
            "method": method,
            "target": INFO,
            "draft": None if method == "single_token" else INFO,
            "prompt": Prompt(text="toy", token_ids=(7,)),
            "settings": chosen,
            "tokens": SURFACES,
            "special_ids": (),
            "eos_ids": (),
            "steps": steps,
            "result": {
                "token_ids": tokens,
                "text": "",
                "finish_reason": "length",
                "metrics": run_metrics(steps, prefill_seconds=0.0),
            },
        }
    )


@pytest.fixture(scope="module")
def traces() -> list[Trace]:
    return [trace_of(method, play(method, GOLDEN_P, GOLDEN_Q, RESCUE)) for method in DEFAULT_METHODS]


def test_the_golden_rescue_is_found_and_told(traces):
    place = find("rescue", traces)
    step = traces[2].steps[place.step]
    assert place == Place(2, step.index, len(step.emitted) - 1)
    assert [v.passes for v in step.verdicts] == [True, False, False, True]
    text = fill(
        "{here.failing_depth}: {here.failing_joint}; {here.last_kept_depth}: {here.last_kept_joint}", traces, place
    )
    assert text == "2: 0.0333; 4: 0.075"


def test_a_hard_choice_is_where_the_target_is_most_open(traces):
    place = find("hard choice", traces)
    entropies = [step.choices[0].entropy_p for step in traces[0].steps]
    assert (place.lane, entropies[place.step]) == (0, max(entropies))
    sure = find("sure thing", traces)
    assert entropies[sure.step] == min(entropies)


def test_a_refusal_is_one_that_the_draft_overrated(traces):
    place = find("refusal", traces)
    refused = next(v for v in traces[1].steps[place.step].verdicts if not v.accepted)
    assert refused.log_q > refused.log_p
    assert fill("{here.refused_ratio}", traces, place) == f"{exp(refused.log_p - refused.log_q):.3g}"
    assert float(fill("{here.refused_draw}", traces, place)) >= exp(refused.log_p - refused.log_q) - 1e-3


@pytest.mark.parametrize("sight", SIGHTS)
def test_what_does_not_occur_is_not_found(sight: str, traces):
    method, _ = SIGHTS[sight]
    others = [trace for trace in traces if trace.method != method]
    assert find(sight, others) is None


def test_a_whole_block_is_one_of_which_nothing_was_dropped(traces):
    for sight, lane in (("bargain kept", 1), ("whole block", 2), ("last whole block", 2)):
        if place := find(sight, traces):
            step = traces[lane].steps[place.step]
            assert all(verdict.accepted for verdict in step.verdicts)
            assert len(step.emitted) == len(step.verdicts) + 1


def test_runs_are_told_by_their_own_figures(traces):
    place = Place(0, 0, 0)
    told = fill("{mtad.tokens} {mtad.passes} {speculative.per_pass} {single_token.per_pass}", traces, place).split()
    assert told[:2] == [str(len(traces[2].result.token_ids)), str(len(traces[2].steps))]
    assert float(told[2]) == pytest.approx(len(traces[1].result.token_ids) / len(traces[1].steps), abs=5e-3)
    assert told[3] == "1"


def test_what_is_not_there_cannot_be_told(traces):
    with pytest.raises(AttributeError):
        fill("{here.refused}", traces, Place(0, 0, 0))
    with pytest.raises(KeyError):
        fill("{beam_search.tokens}", traces, Place(0, 0, 0))
