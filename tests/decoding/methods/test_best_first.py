"""Best-first search against plain enumeration, and against beam search on the real pair."""

import math
from functools import cache

import numpy as np
import pytest
import torch

from decoding.context import Context
from decoding.methods.best_first import best_blocks
from decoding.methods.searched import SearchedTree
from decoding.pair import ModelPair
from decoding.prompting import prepare_prompt
from decoding.settings import DecodingSettings

KINDS = ("random", "ties", "zeros", "sharp")


class ToyLaws:
    """Laws after every prefix, drawn once; a kind of them has equal, a kind has zero probabilities."""

    def __init__(self, vocabulary: int, kind: str, seed: int) -> None:
        self.vocabulary, self.kind, self.seed = vocabulary, kind, seed
        self.asked: dict[tuple[int, ...], None] = {}
        self.law = cache(self._law)

    def _law(self, path: tuple[int, ...]) -> list[float]:
        draw = np.random.default_rng([self.seed, len(path), *path])
        weights = {
            "random": draw.random(self.vocabulary),
            "ties": draw.integers(1, 3, self.vocabulary),
            "zeros": draw.integers(0, 3, self.vocabulary),
            "sharp": draw.random(self.vocabulary) ** 8,
        }[self.kind].astype(float)
        weights[draw.integers(self.vocabulary)] += 1.0
        return (weights / weights.sum()).tolist()

    def after(self, paths) -> torch.Tensor:
        for path in paths:
            assert path not in self.asked
            assert not path or path[:-1] in self.asked
            self.asked[path] = None
        return torch.tensor([self.law(path) for path in paths], dtype=torch.float64).log()


def enumerated(laws: ToyLaws, length: int, eos: frozenset[int]) -> list[tuple[float, tuple[int, ...]]]:
    """Every block with its −log P, in order; sums run from the first token to the last."""
    blocks, open_blocks = [], [(0.0, ())]
    while open_blocks:
        cost, path = open_blocks.pop()
        if len(path) == length or (path and path[-1] in eos):
            blocks.append((cost, path))
            continue
        log_law = torch.tensor(laws.law(path), dtype=torch.float64).log().tolist()  # the same logarithm as the search's
        open_blocks += [(cost - log, (*path, token)) for token, log in enumerate(log_law) if log > -math.inf]
    return sorted(blocks)


def assert_equals_enumeration(seed: int) -> None:
    choose = np.random.default_rng(seed)
    vocabulary, length = int(choose.integers(2, 6)), int(choose.integers(1, 5))
    eos = frozenset(choose.choice(vocabulary, size=choose.integers(0, 2), replace=False).tolist())
    count, batch = int(choose.choice([1, 2, 5, 40])), int(choose.choice([1, 3, 8]))
    laws = ToyLaws(vocabulary, KINDS[seed % len(KINDS)], seed)
    expected = enumerated(laws, length, eos)
    found = best_blocks(laws.after, length=length, count=count, eos_ids=eos, budget=1000, batch=batch)
    assert [block.path for block in found.blocks] == [path for _, path in expected[:count]]
    assert [block.log_p for block in found.blocks] == [-cost for cost, _ in expected[:count]]
    assert found.proven == len(found.blocks)
    assert found.shortfall == 0
    assert found.scored == tuple(laws.asked)
    rest = expected[count:]
    assert found.bound >= -rest[0][0] if rest else found.bound == -math.inf


@pytest.mark.parametrize("hundred", range(10))
def test_search_equals_enumeration(hundred):
    for seed in range(100 * hundred, 100 * (hundred + 1)):
        assert_equals_enumeration(seed)


@pytest.mark.parametrize("seed", range(60))
def test_a_search_that_ran_out_of_budget_says_how_good_it_is_at_worst(seed):
    choose = np.random.default_rng(seed)
    length, count = int(choose.integers(2, 5)), int(choose.choice([1, 3]))
    eos = frozenset(choose.choice(5, size=choose.integers(0, 2)).tolist())
    laws = ToyLaws(5, KINDS[seed % len(KINDS)], seed)
    ranked = [(-cost, path) for cost, path in enumerated(laws, length, eos)]
    for budget in range(length, 40, 3):
        laws.asked.clear()
        found = best_blocks(laws.after, length=length, count=count, eos_ids=eos, budget=budget)
        assert len(laws.asked) <= budget
        assert found.blocks
        assert [(block.log_p, block.path) for block in found.blocks[: found.proven]] == ranked[: found.proven]
        assert all((block.log_p, block.path) in ranked for block in found.blocks)
        rest = ranked[found.proven :]
        assert not rest or rest[0][0] <= found.bound
        assert ranked[0][0] <= found.blocks[0].log_p + found.shortfall


def test_no_search_finds_a_better_block_than_one_whose_budget_is_ample():
    for seed in range(30):
        laws = ToyLaws(6, "random", seed)
        best = []
        for budget in (5, 10, 20, 40, 1000):
            laws.asked.clear()
            best.append(best_blocks(laws.after, length=5, budget=budget).blocks[0].log_p)
        assert max(best) == best[-1]
        greedy, path = 0.0, ()
        while len(path) < 5:
            law = laws.law(path)
            greedy, path = greedy + math.log(max(law)), (*path, law.index(max(law)))
        assert best[0] >= greedy - 1e-9


def test_batches_save_passes():
    laws, passes = ToyLaws(6, "random", 1), []

    def counted(paths) -> torch.Tensor:
        passes.append(len(paths))
        return laws.after(paths)

    best_blocks(counted, length=4, budget=1000, batch=1)
    alone = len(passes)
    passes.clear()
    laws.asked.clear()
    best_blocks(counted, length=4, budget=1000, batch=8)
    assert len(passes) < alone / 3
    assert max(passes) <= 8


def test_a_budget_too_small_for_a_block_is_refused():
    with pytest.raises(ValueError, match="does not reach to the end of a block of 4 tokens"):
        best_blocks(ToyLaws(3, "random", 0).after, length=4, budget=3)


def beam_search(context: Context, pending: list[int], length: int, width: int, eos: frozenset[int]) -> float:
    """The joint log-probability of the best block that beam search of this width finds."""
    beams = [(0.0, ())]
    root = context.feed(pending)[0].double()
    slots: dict[tuple[int, ...], int] = {(): -1}
    laws = {(): root}
    for depth in range(length):
        pool = [(joint, path) for joint, path in beams if path and path[-1] in eos]
        for joint, path in beams:
            if not (path and path[-1] in eos):
                top = laws[path].topk(width)
                pool += [
                    (joint + log, (*path, token)) for log, token in zip(*map(torch.Tensor.tolist, top), strict=True)
                ]
        beams = sorted(pool, reverse=True)[:width]
        grown = [path for _, path in beams if len(path) == depth + 1 and path[-1] not in eos]
        if depth + 1 < length and grown:
            after = context.branch([path[-1] for path in grown], [slots[path[:-1]] for path in grown])
            slots |= {path: len(slots) - 1 + row for row, path in enumerate(grown)}
            laws = dict(zip(grown, after.double(), strict=True))
    return beams[0][0]


@pytest.mark.slow
@pytest.mark.parametrize("length", [2, 3])
def test_on_the_real_target_search_finds_at_least_what_a_wide_beam_finds(length):
    target = ModelPair.load("SmolLM2-135M-Instruct", device="cpu").target
    for prompt in (
        "Why is the sky blue?",
        "Tell me a joke about a statistician.",
        "把下面的句子翻译成英文：我喜欢茶。",
    ):
        ids = list(prepare_prompt(ModelPair(target), prompt, DecodingSettings()).token_ids)
        beam = beam_search(target.open(), ids, length, 64, target.eos_ids)
        tree = SearchedTree(target.open(), ids, warp=lambda laws: laws)
        found = best_blocks(tree.laws_after, length=length, eos_ids=target.eos_ids, budget=2000)
        assert found.proven == 1
        assert found.blocks[0].log_p >= beam - 1e-4  # they sum in passes of different shapes
        assert len(found.scored) < 200
