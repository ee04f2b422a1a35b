"""Toy models are models: their contexts keep the protocol, and their laws are as written."""

import pytest
import torch

from decoding.context import TRUNK, Spent
from decoding.toy import hashed, tabled


def test_hashed_laws_are_laws_and_stay_the_same():
    model, same, other = hashed(5, seed=1), hashed(5, seed=1), hashed(5, seed=2)
    law = model.law_of((0, 3, 2))
    assert sum(law) == pytest.approx(1, abs=1e-15)
    assert min(law) > 0
    assert list(law) == list(same.law_of((0, 3, 2)))
    assert list(law) != list(other.law_of((0, 3, 2)))
    assert list(law) != list(model.law_of((3, 2)))
    assert list(hashed(4, sharpness=0).law_of((1,))) == [0.25] * 4


def test_a_table_is_looked_up_by_the_longest_ending():
    model = tabled({(): [0.5, 0.5], (1,): [0.9, 0.1], (0, 1): [0.2, 0.8]})
    assert model.law_of(()) == model.law_of((1, 0)) == (0.5, 0.5)
    assert model.law_of((1, 1)) == (0.9, 0.1)
    assert model.law_of((1, 1, 0, 1)) == (0.2, 0.8)


@pytest.mark.parametrize("laws", [{(1,): [1.0]}, {(): [0.5, 0.6]}, {(): [1.5, -0.5]}, {(): [0.5, 0.5], (0,): [1.0]}])
def test_tables_that_are_no_laws_are_refused(laws):
    with pytest.raises(ValueError, match=r"not a law|needs a law"):
        tabled(laws)


def test_contexts_feed_branch_commit_and_cut():
    model = hashed(4, seed=9)

    def law(*text):
        return torch.tensor(model.law_of(text), dtype=torch.float64).log()

    context = model.open()
    assert torch.equal(context.feed([1, 2, 3], last=2), torch.stack([law(1, 2), law(1, 2, 3)]))
    assert torch.equal(context.branch([0, 2], [TRUNK, TRUNK]), torch.stack([law(1, 2, 3, 0), law(1, 2, 3, 2)]))
    assert torch.equal(context.branch([3, 1], [1, 0]), torch.stack([law(1, 2, 3, 2, 3), law(1, 2, 3, 0, 1)]))
    with pytest.raises(RuntimeError, match="commit or cut"):
        context.feed([0])
    with pytest.raises(ValueError, match="not a path"):
        context.commit([0, 2])
    with pytest.raises(ValueError, match="not a path"):
        context.commit([2])
    context.commit([1, 2])
    assert context.tokens == [1, 2, 3, 2, 3]
    context.cut(2)
    assert context.tokens == [1, 2]
    with pytest.raises(ValueError, match="cannot be cut"):
        context.cut(3)
    assert context.spent == Spent(passes=3, tokens=7)
