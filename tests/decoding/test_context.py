"""A cached context says what plain forward passes over the same texts say, whatever was done to it before."""

import numpy as np
import pytest
import torch

from decoding.context import TRUNK, CachedContext, Cancelled
from decoding.language_model import LanguageModel, UnsupportedModel
from tests.decoding.tiny import CONFIGS, VOCABULARY, tiny_model, tiny_tokenizer


def plain(model, text: list[int]) -> torch.Tensor:
    with torch.inference_mode():
        return model(input_ids=torch.tensor([text]), use_cache=False).logits[0, -1].log_softmax(-1)


class Shadow:
    """A context and, beside it, the texts that its laws are about."""

    def __init__(self, model) -> None:
        self.model, self.context = model, CachedContext(model, VOCABULARY)
        self.trunk: list[int] = []
        self.nodes: list[list[int]] = []  # root paths

    def feed(self, tokens: list[int], last: int) -> None:
        laws = self.context.feed(tokens, last)
        self.trunk += tokens
        texts = [self.trunk[: len(self.trunk) - back] for back in reversed(range(last))]
        self.compare(laws, texts)

    def branch(self, tokens: list[int], parents: list[int]) -> None:
        laws = self.context.branch(tokens, parents)
        for token, parent in zip(tokens, parents, strict=True):
            self.nodes.append([*([] if parent == TRUNK else self.nodes[parent]), token])
        self.compare(laws, [self.trunk + path for path in self.nodes[-len(tokens) :]])

    def commit(self, node: int) -> None:
        path = self.nodes[node]
        self.context.commit([self.nodes.index(path[:end]) for end in range(1, len(path) + 1)])
        self.trunk, self.nodes = self.trunk + path, []

    def cut(self, length: int) -> None:
        self.context.cut(length)
        self.trunk, self.nodes = self.trunk[:length], []

    def compare(self, laws: torch.Tensor, texts: list[list[int]]) -> None:
        assert self.context.tokens == self.trunk
        expected = torch.stack([plain(self.model, text) for text in texts])
        torch.testing.assert_close(laws, expected, atol=1e-4, rtol=0)


def act(shadow: Shadow, choose: np.random.Generator) -> None:
    """One random operation that the protocol allows here. Siblings are different tokens, so that paths are unique."""
    kind = choose.choice(["feed", "branch", "branch", "commit", "cut"])
    if kind == "branch":
        parents = [int(parent) for parent in choose.integers(TRUNK, len(shadow.nodes), size=choose.integers(1, 5))]
        taken = [path[-1] for path in shadow.nodes]
        fresh = [token for token in range(VOCABULARY) if token not in taken]
        shadow.branch([int(token) for token in choose.choice(fresh, size=len(parents), replace=False)], parents)
    elif kind == "commit" and shadow.nodes:
        shadow.commit(int(choose.integers(len(shadow.nodes))))
    elif kind == "cut":
        shadow.cut(len(shadow.trunk) - int(choose.integers(0, min(5, len(shadow.trunk)))))
    elif not shadow.nodes:
        tokens = [int(token) for token in choose.integers(VOCABULARY, size=choose.integers(1, 6))]
        shadow.feed(tokens, last=int(choose.integers(1, len(tokens) + 1)))


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("architecture", CONFIGS)
def test_any_sequence_of_operations_equals_plain_passes(architecture, seed):
    shadow, choose = Shadow(tiny_model(architecture, seed)), np.random.default_rng(seed)
    shadow.feed([int(token) for token in choose.integers(VOCABULARY, size=12)], last=12)
    for _ in range(20):
        act(shadow, choose)
    shadow.cut(len(shadow.trunk))
    shadow.feed([1, 2, 3], last=3)


def test_the_whole_trunk_can_be_cut_and_fed_anew():
    shadow = Shadow(tiny_model("Llama"))
    shadow.feed([5, 6, 7], last=1)
    shadow.cut(0)
    shadow.feed([9, 8], last=2)


def test_misuse_is_refused():
    context = CachedContext(tiny_model("Llama"), VOCABULARY)
    context.feed([1, 2])
    context.branch([3, 4], [TRUNK, 0])
    with pytest.raises(RuntimeError, match="commit or cut"):
        context.feed([5])
    with pytest.raises(ValueError, match="not a path"):
        context.commit([1])
    with pytest.raises(ValueError, match="cannot be cut"):
        context.cut(3)
    assert (context.spent.passes, context.spent.tokens) == (2, 4)


def test_a_refused_pass_leaves_the_context_as_it_was():
    model, refusing = tiny_model("Gemma-3"), False

    def before_pass() -> None:
        if refusing:
            raise Cancelled

    context = CachedContext(model, VOCABULARY, before_pass)
    context.feed([1, 2, 3])
    refusing = True
    with pytest.raises(Cancelled):
        context.feed([4])
    assert context.tokens == [1, 2, 3]
    assert context.spent.passes == 1


@pytest.mark.parametrize(
    ("config", "name"),
    [
        ("MambaConfig(vocab_size=60, hidden_size=16, state_size=4, num_hidden_layers=2)", "mamba"),
        (
            "Lfm2Config(vocab_size=60, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,"
            " num_key_value_heads=2, layer_types=['conv', 'full_attention'])",
            "lfm2",
        ),
    ],
)
def test_models_whose_cache_cannot_be_cut_are_refused_by_name(config, name, tmp_path):
    import transformers

    model = transformers.AutoModelForCausalLM.from_config(eval(f"transformers.{config}"))
    model.save_pretrained(tmp_path)
    tiny_tokenizer().save_pretrained(tmp_path)
    with pytest.raises(UnsupportedModel, match=rf"is a {name} model: .* cannot be cut back"):
        LanguageModel.load(str(tmp_path), device="cpu")
