"""A quick audit of the real pair, the audit's own eyesight, and greedy decoding that is the same by every road."""

import pytest
import torch

from decoding.decode import decode
from decoding.pair import ModelPair
from decoding.settings import DecodingSettings
from tests.audit.audit import audit
from tests.audit.plain import plain_laws, warped
from tests.decoding import naive
from tests.decoding.tiny import PROMPT, tiny_model, tiny_pair

METHODS = ("single_token", "speculative", "mtad", "mtjd", "typical")
NEAR = 1e-4  # two logits closer than this may change places with the order of additions


def tampered(trace, step: int, **fields):
    steps = list(trace.steps)
    steps[step] = steps[step].model_copy(update=fields)
    return trace.model_copy(update={"steps": tuple(steps)})


def test_the_audit_notices_what_is_wrong():
    pair = tiny_pair("Llama")
    trace = decode("mtad", pair, PROMPT, DecodingSettings(max_new_tokens=12, threshold=0.3))
    first = trace.steps[0]
    node, verdict, emitted, choice = first.draft.nodes[0], first.verdicts[0], first.emitted[0], first.choices[0]
    wrong_node = node.model_copy(update={"log_q": node.log_q - 0.01})
    lies = [
        {"draft": first.draft.model_copy(update={"nodes": (wrong_node, *first.draft.nodes[1:])})},
        {"verdicts": (verdict.model_copy(update={"joint_log_p": verdict.joint_log_p - 0.01}), *first.verdicts[1:])},
        {"verdicts": tuple(v.model_copy(update={"accepted": not v.accepted}) for v in first.verdicts)},
        {"emitted": (emitted.model_copy(update={"log_p": emitted.log_p - 0.01}), *first.emitted[1:])},
        {"emitted": (emitted.model_copy(update={"origin": "resampled"}), *first.emitted[1:])},
        {"choices": (choice.model_copy(update={"entropy_p": choice.entropy_p + 0.01}), *first.choices[1:])},
        {"choices": (choice.model_copy(update={"top": choice.top[1:]}), *first.choices[1:])},
        {"cost": first.cost.model_copy(update={"target_tokens": first.cost.target_tokens + 1})},
    ]
    models = pair.target.model, pair.draft.model
    assert not audit(trace, *models).failures
    for lie in lies:
        assert audit(tampered(trace, 0, **lie), *models).failures, lie.keys()
    metrics = trace.result.metrics
    figures = {"perplexity": metrics.perplexity * 1.01, "accepted": metrics.accepted + 1, "distinct_2": 0.123}
    for name, figure in figures.items():
        result = trace.result.model_copy(update={"metrics": metrics.model_copy(update={name: figure})})
        assert audit(trace.model_copy(update={"result": result}), *models).failures, name


def test_the_audit_notices_what_is_wrong_with_a_verified_tree():
    pair = tiny_pair("Llama")
    made = DecodingSettings(max_new_tokens=12, threshold=0.3, tree_verification=True)
    trace = decode("mtad", pair, PROMPT, made)
    models = pair.target.model, pair.draft.model
    assert not audit(trace, *models).failures
    step = next(step for step in trace.steps if step.verdicts[0].accepted)
    fewer = tuple(verdict.model_copy(update={"accepted": False}) for verdict in step.verdicts)
    unscored = step.draft.nodes[-1].model_copy(update={"scored": False, "log_p": None, "joint_log_p": None})
    lies = [
        {"verdicts": fewer},
        {"verdicts": (step.verdicts[0].model_copy(update={"joint_log_q": -9.0}), *step.verdicts[1:])},
        {"draft": step.draft.model_copy(update={"nodes": (*step.draft.nodes[:-1], unscored)})},
    ]
    for lie in lies:
        assert audit(tampered(trace, step.index, **lie), *models).failures, lie.keys()


def test_the_audit_notices_what_is_wrong_with_an_exact_search():
    pair = tiny_pair("Llama")
    trace = decode("mtjd", pair, PROMPT, DecodingSettings(max_new_tokens=8, draft_length=2, best_blocks=3))
    assert not audit(trace, pair.target.model, None, pair.target.eos_ids).failures
    first = trace.steps[0]
    lies = [
        {"bound": first.search.bound - 1},
        {"blocks": first.search.blocks[::-1]},
        {"evaluations": first.search.evaluations - 1},
    ]
    for lie in lies:
        told = tampered(trace, 0, search=first.search.model_copy(update=lie))
        assert audit(told, pair.target.model, None, pair.target.eos_ids).failures, lie


def test_plain_laws_do_not_depend_on_their_batch():
    model = tiny_model("GPT-2")
    texts = [(1, 2, 3), (1, 2, 3, 4, 5), (1, 2, 3, 9), (7,), (7, 8) * 20]
    laws = plain_laws(model, texts)
    for text in texts:
        with torch.inference_mode():
            alone = model(input_ids=torch.tensor([text]), use_cache=False).logits[0, -1].log_softmax(-1)
        torch.testing.assert_close(laws[text], alone, atol=1e-5, rtol=0)


@pytest.mark.parametrize(("temperature", "top_k", "top_p"), [(0, 0, 1), (0.7, 5, 0.8), (1.3, 0, 0.5), (1, 3, 1)])
def test_the_warp_of_the_audit_is_the_naive_one(temperature, top_k, top_p):
    torch.manual_seed(0)
    for law in torch.randn(20, 12).softmax(-1):
        found = warped(law.log(), temperature, top_k, top_p)[0].exp().tolist()
        assert found == pytest.approx(naive.warp(law.double().tolist(), temperature, top_k, top_p), abs=1e-6)


@pytest.fixture(scope="module")
def pair() -> ModelPair:
    return ModelPair.load("SmolLM2-135M-Instruct", "SmolLM2-aligned-draft", device="cpu")


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("prompt", "changes"),
    [
        ("🎂 生日快乐 🎉 🥳 生日快乐 🎂 🎉 生日快乐 🥳 🎂", {"chat": False}),
        ("List three fruits.", {"temperature": 0, "draft_length": 3}),
    ],
    ids=["emoji", "greedy"],
)
def test_traces_of_the_real_pair_are_true(pair, method, prompt, changes):
    settings = DecodingSettings(**({"max_new_tokens": 16} | changes))
    trace = decode(method, pair, prompt, settings)
    ledger = audit(trace, pair.target.model, pair.draft.model, pair.target.eos_ids)
    assert not ledger.failures
    assert ledger.numbers > 20 * len(trace.result.token_ids)
    print(f"{method}: {ledger.numbers} numbers, largest deviation {ledger.largest:.1e}")


@pytest.mark.slow
@pytest.mark.parametrize("prompt", ["Why do cats purr?", "用中文写一句关于月亮的话。"])
def test_greedy_speculative_is_greedy(pair, prompt):
    settings = DecodingSettings(temperature=0, max_new_tokens=20)
    plain, assisted = (decode(method, pair, prompt, settings) for method in ("single_token", "speculative"))
    ours, theirs = plain.result.token_ids, assisted.result.token_ids
    if ours == theirs:
        return
    at = next(i for i, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b)
    text = (*plain.prompt.token_ids, *ours[:at])
    first, second = plain_laws(pair.target.model, [text])[text].topk(2).values.tolist()
    print(f"they part at token {at}, where the two best logits differ by {first - second:.1e}")
    assert first - second < NEAR
