"""The best block on demand: found on the run's own target, said in words, and refused in words."""

import math

import pytest

from app.best_block import NO_SUCH_STEP, Searches, in_words, judged
from app.explained import GONE
from decoding.gap import Gap
from decoding.trace import Verdict
from tests.app.test_branching import finished
from tests.app.test_runner import lanes, pair, runner, runner_on  # noqa: F401
from tests.browser.scripted import SCRIPTS

WORDS = ["·the", "·sky", "·is", "·blue"]
MTAD = 2


def spell(token: int) -> str:
    return WORDS[token]


def verdicts(*tokens: int, kept: bool = True) -> list[Verdict]:
    laws = {"log_p": -1.0, "log_q": -1.0, "joint_log_p": -2.0, "joint_log_q": -2.0, "uniform": None, "threshold": 0.5}
    return [Verdict(depth=i + 1, token=token, passes=kept, accepted=kept, **laws) for i, token in enumerate(tokens)]


def gap(block: tuple[int, ...], own: float, best: float, bound: float | None = None) -> Gap:
    return Gap(
        length=2,
        own=math.log(own),
        best=math.log(best),
        bound=math.log(bound or best),
        block=block,
        evaluations=17,
    )


@pytest.mark.parametrize(
    ("found", "block", "told"),
    [
        (
            gap((0, 1), 0.4, 0.4),
            verdicts(0, 1),
            "The kept block is the most probable one of 2 tokens: “·the·sky” (P = 0.4). 17 prefixes scored on the target to prove it.",
        ),
        (
            gap((2, 3), 0.1, 0.4),
            verdicts(0, 1),
            "The most probable block of 2 tokens is “·is·blue” (P = 0.4). The kept one has P = 0.1: a gap of 1.39 nats, "
            "4 times less. 17 prefixes scored on the target to find it.",
        ),
        (
            gap((2, 3), 0.1, 0.4),
            verdicts(0, 1, kept=False),
            "The most probable block of 2 tokens is “·is·blue” (P = 0.4). The drafted one has P = 0.1: a gap of 1.39 nats, "
            "4 times less. 17 prefixes scored on the target to find it.",
        ),
        (
            gap((2, 3), 0.1, 0.2, bound=0.25),
            verdicts(0, 1),
            "17 prefixes scored on the target and no end: the best block of 2 tokens found is “·is·blue” (P = 0.2), and none "
            "exceeds P = 0.25. The kept block has P = 0.1.",
        ),
    ],
)
def test_every_outcome_in_words(found, block, told):
    assert in_words(found, block, spell) == told


def test_the_best_block_of_a_scripted_target_is_its_script(runner):  # noqa: F811
    run, traces = finished(runner)
    kept = len(judged(traces[MTAD], 0))
    *waiting, answer = Searches(runner.models, runner.shelf).answers({"run": run, "lane": MTAD, "step": 0})
    assert [moment["text"] for moment in waiting] == ["Searching …"]
    assert (answer["run"], answer["lane"], answer["step"], answer["state"]) == (run, MTAD, 0, "done")
    block = "".join(SCRIPTS["plain"][:kept]).replace(" ", "·")
    assert answer["text"].startswith(f"The kept block is the most probable one of {kept} tokens: “{block}” (P = ")


@pytest.mark.parametrize(("lane", "step"), [(0, 0), (1, 0), (MTAD, 999), (7, 0)])
def test_a_step_that_has_no_block_of_mtad_is_refused(runner, lane, step):  # noqa: F811
    run, _ = finished(runner)
    (answer,) = Searches(runner.models, runner.shelf).answers({"run": run, "lane": lane, "step": step})
    assert (answer["state"], answer["text"]) == ("error", NO_SUCH_STEP)


def test_a_run_that_is_gone_is_refused(runner):  # noqa: F811
    (answer,) = Searches(runner.models, runner.shelf).answers({"run": "gone", "lane": 0, "step": 0})
    assert (answer["state"], answer["text"]) == ("error", GONE)


@pytest.mark.parametrize("asked", [None, "run", {"run": "x" * 101, "lane": 0, "step": 0}, {"run": "", "lane": -1}])
def test_what_is_no_question_gets_no_answer(runner, asked):  # noqa: F811
    assert list(Searches(runner.models, runner.shelf).answers(asked)) == []


def test_a_run_of_other_models_is_refused(runner):  # noqa: F811
    run, traces = finished(runner)
    trace = traces[MTAD]
    other = trace.model_copy(update={"target": trace.target.model_copy(update={"source": "other", "name": "other"})})
    runner.shelf.put(run, [other])
    (answer,) = Searches(runner.models, runner.shelf).answers({"run": run, "lane": 0, "step": 0})
    assert answer["text"] == "other is not offered here: it cannot be searched."


def test_a_prompt_that_the_models_split_otherwise_is_refused(runner):  # noqa: F811
    run, traces = finished(runner)
    trace = traces[MTAD]
    prompt = trace.prompt.model_copy(update={"text": "something else"})
    runner.shelf.put(run, [trace.model_copy(update={"prompt": prompt})])
    (answer,) = Searches(runner.models, runner.shelf).answers({"run": run, "lane": 0, "step": 0})
    assert "split this run's prompt otherwise" in answer["text"]
