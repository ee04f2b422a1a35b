"""Where texts end: end-of-text tokens, limits and stop strings at every offset of a block, for each method."""

import pytest

from decoding.enumeration import Toys
from decoding.methods import METHODS
from decoding.run import Run
from decoding.settings import DecodingSettings
from decoding.streams import Streams
from decoding.toy import Text, ToyModel, hashed

PROMPT = (1, 0)
VOCABULARY = 5
PIECES = ("a", "b", "ab", " ", "c")
SETTINGS = {
    "sampled": {"top_k": 0, "top_p": 1, "temperature": 0.7},
    "searched": {"top_k": 3, "draft_search": "search", "threshold": 0.05},
    "greedy": {"temperature": 0},
}


class Pieces:
    """A tokenizer that can only decode."""

    def decode(self, tokens, **_) -> str:
        return "".join(PIECES[token] for token in tokens)


def run_toys(
    method: str, target: ToyModel, draft: ToyModel, eos=frozenset(), seed: int = 0, **settings
) -> tuple[Run, list]:
    made = DecodingSettings(seed=seed, **settings)
    streams = Streams.seeded(seed, method)
    run = Run(target.open(), draft.open(), PROMPT, made, streams, eos, Pieces())
    return run, list(METHODS[method].steps(run))


def scripted(length_of_text: int, token: int, otherwise: int = 4) -> ToyModel:
    """Says `otherwise`, but `token` where `length_of_text` tokens have been emitted."""

    def law_of(text: Text) -> list[float]:
        said = token if len(text) - len(PROMPT) == length_of_text else otherwise
        return [float(i == said) for i in range(VOCABULARY)]

    return ToyModel(law_of)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("offset", range(9))
@pytest.mark.parametrize("eos", [{0, 3}])
def test_nothing_follows_the_end_of_text(method, offset, eos):
    ends = scripted(offset, token=0)
    run, steps = run_toys(method, ends, ends, frozenset(eos), draft_length=3, beam_width=2, max_new_tokens=20)
    assert run.emitted == [4] * offset + [0]
    assert run.finish_reason == "eos"
    assert all(not step.discarded for step in steps)


@pytest.mark.parametrize("method", ["speculative", "mtad"])
@pytest.mark.parametrize("offset", [0, 1, 2, 4, 5, 6])  # token 3 is the target's own, behind a block of three
def test_a_drafted_end_that_the_target_refuses_is_not_one(method, offset):
    goes_on, ends = scripted(-1, token=0), scripted(offset, token=0)
    run, steps = run_toys(method, goes_on, ends, frozenset({0}), draft_length=3, max_new_tokens=9)
    assert run.emitted == [4] * 9
    assert run.finish_reason == "length"
    assert any(node.token == 0 for step in steps for node in step.draft.nodes)


@pytest.mark.parametrize("method", ["speculative", "mtad"])
@pytest.mark.parametrize("offset", range(6))
def test_an_end_that_only_the_target_sees_ends_the_text(method, offset):
    goes_on, ends = scripted(-1, token=0), scripted(offset, token=0)
    run, steps = run_toys(method, ends, goes_on, frozenset({0}), draft_length=3, max_new_tokens=9)
    assert run.emitted == [4] * offset + [0]
    assert steps[-1].emitted[-1].origin != "accepted"


@pytest.mark.parametrize("warp", SETTINGS)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(4))
def test_the_first_end_is_the_last_token_of_random_texts(method, seed, warp):
    run, steps = run_toys(
        method,
        hashed(VOCABULARY, seed),
        hashed(VOCABULARY, seed + 9),
        frozenset({2, 3}),
        seed,
        max_new_tokens=25,
        **SETTINGS[warp],
    )
    assert not {2, 3} & set(run.emitted[:-1])
    assert run.finish_reason == ("eos" if run.emitted[-1] in {2, 3} else "length")
    assert all(not step.discarded for step in steps[:-1])


@pytest.mark.parametrize("warp", SETTINGS)
@pytest.mark.parametrize("method", METHODS)
def test_a_limit_gives_the_prefix_of_the_text_without_it(method, warp):
    target, draft = hashed(VOCABULARY, 3), hashed(VOCABULARY, 4, sharpness=0.5)
    same = SETTINGS[warp] | {"draft_length": 4, "threshold": 0.05}
    whole, whole_steps = run_toys(method, target, draft, seed=5, max_new_tokens=11, **same)
    for limit in range(1, 11):
        run, steps = run_toys(method, target, draft, seed=5, max_new_tokens=limit, **same)
        assert run.emitted == whole.emitted[:limit]
        assert run.finish_reason == "length"
        last, uncut = steps[-1], whole_steps[len(steps) - 1]
        cut = [token.token for token in last.emitted] + list(last.discarded)
        assert cut == [token.token for token in uncut.emitted] + list(uncut.discarded)
        assert last.verdicts == uncut.verdicts
        assert last.draft == uncut.draft
        assert len(last.choices) == len(last.emitted)


@pytest.mark.parametrize("warp", SETTINGS)
@pytest.mark.parametrize("method", METHODS)
def test_stop_strings_end_the_text_at_the_first_match(method, warp):
    target, draft = hashed(VOCABULARY, 6), hashed(VOCABULARY, 7, sharpness=0.5)
    same = SETTINGS[warp] | {"draft_length": 3, "threshold": 0.05}
    whole, _ = run_toys(method, target, draft, seed=2, max_new_tokens=12, **same)
    decode = Pieces().decode
    text = decode(whole.emitted)
    stops = {text[i : i + n] for n in (1, 3) for i in range(len(text) - n + 1)}  # across tokens and blocks
    for stop in sorted(stops):
        run, steps = run_toys(method, target, draft, seed=2, max_new_tokens=12, stop=("never", stop), **same)
        first = next(n for n in range(1, 13) if stop in decode(whole.emitted[:n]))
        assert run.emitted == whole.emitted[:first]
        assert run.finish_reason == "stop"
        after = whole.emitted[first : first + len(steps[-1].discarded)]
        assert list(steps[-1].discarded)[: len(after)] == after


def test_a_stop_string_of_the_prompt_or_across_its_border_does_not_count():
    goes_on = scripted(-1, token=0, otherwise=1)  # the prompt is "ba", the text "bbb…"
    run, _ = run_toys("single_token", goes_on, goes_on, max_new_tokens=4, stop=("ba", "ab"))
    assert run.finish_reason == "length"


@pytest.mark.parametrize("method", METHODS)
def test_an_end_of_text_comes_before_a_stop_string_and_a_limit(method):
    ends = scripted(2, token=0)
    run, _ = run_toys(method, ends, ends, frozenset({0}), max_new_tokens=3, stop=("cca",))
    assert (run.emitted, run.finish_reason) == ([4, 4, 0], "eos")


@pytest.mark.parametrize("method", METHODS)
def test_a_prompt_of_one_token_works(method):
    made = DecodingSettings(max_new_tokens=5)
    toys = Toys(METHODS[method].steps, hashed(4, 1), hashed(4, 2), (3,), made)
    run = toys.run(Streams.seeded(0, method))
    steps = list(toys.steps(run))
    assert len(run.emitted) == 5
    assert steps[0].cost.target_tokens >= 1
