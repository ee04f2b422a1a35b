"""The warp against a naive one, and against values worked out by hand."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from decoding.settings import DecodingSettings
from decoding.warp import most_probable, warp
from tests.decoding import naive


def warped(law: list[float], **settings) -> list[float]:
    log_law = torch.tensor([law], dtype=torch.float64).log()
    return warp(log_law, DecodingSettings(**settings))[0].exp().tolist()


@given(
    st.integers(0, 10_000),
    st.integers(2, 12),
    st.sampled_from([0, 0.3, 0.7, 1, 1.0, 1.7, 5]),
    st.integers(0, 14),
    st.sampled_from([0.05, 0.3, 0.61, 0.9, 0.99, 1]),
)
def test_warp_equals_the_naive_one(seed, size, temperature, top_k, top_p):
    law = np.random.default_rng(seed).dirichlet(np.ones(size)).tolist()
    found = warped(law, temperature=temperature, top_k=top_k, top_p=top_p)
    assert found == pytest.approx(naive.warp(law, temperature, top_k, top_p), abs=1e-12)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"temperature": 1, "top_k": 0, "top_p": 1}, [0.1, 0.4, 0.2, 0.3]),
        ({"temperature": 0.5, "top_k": 0, "top_p": 1}, [0.01 / 0.3, 0.16 / 0.3, 0.04 / 0.3, 0.09 / 0.3]),
        ({"temperature": 1, "top_k": 2, "top_p": 1}, [0, 4 / 7, 0, 3 / 7]),
        ({"temperature": 1, "top_k": 0, "top_p": 0.39}, [0, 1, 0, 0]),
        ({"temperature": 1, "top_k": 0, "top_p": 0.41}, [0, 4 / 7, 0, 3 / 7]),  # the one that crosses stays
        ({"temperature": 1, "top_k": 0, "top_p": 0.71}, [0, 4 / 9, 2 / 9, 3 / 9]),
        # top-p counts the law that top-k left: 0.4 of 0.7 is enough for 0.55, though 0.4 alone is not
        ({"temperature": 1, "top_k": 2, "top_p": 0.55}, [0, 1, 0, 0]),
        # temperature comes first: squared, 0.16 of 0.3 passes 0.5
        ({"temperature": 0.5, "top_k": 0, "top_p": 0.5}, [0, 1, 0, 0]),
        ({"temperature": 0, "top_k": 1, "top_p": 0.1}, [0, 1, 0, 0]),
    ],
)
def test_worked_examples(settings, expected):
    assert warped([0.1, 0.4, 0.2, 0.3], **settings) == pytest.approx(expected, abs=1e-12)


def test_temperature_zero_takes_the_lowest_id_of_equals():
    assert warped([0.1, 0.3, 0.3, 0.3], temperature=0) == [0, 1, 0, 0]
    rows = torch.zeros(3, 50_000)
    rows[1, 40_000:] = 1.0
    rows[2, [7, 49_999]] = 2.0
    assert most_probable(rows).tolist() == [0, 40_000, 7]


def test_equals_of_the_kth_stay():
    assert warped([0.4, 0.2, 0.2, 0.2], top_k=2, top_p=1) == pytest.approx([0.4, 0.2, 0.2, 0.2])


def test_equals_at_the_border_of_top_p_leave_a_law_of_the_right_size():
    found = warped([0.4, 0.2, 0.2, 0.2], top_k=0, top_p=0.5)
    assert sorted(found) == pytest.approx([0, 0, 1 / 3, 2 / 3])


def test_rows_are_warped_each_by_itself():
    laws = torch.tensor(np.random.default_rng(1).dirichlet(np.full(30, 0.3), size=7)).log()
    settings = DecodingSettings(temperature=0.8, top_k=9, top_p=0.8)
    together = warp(laws, settings)
    for row, law in enumerate(laws):
        assert torch.equal(together[row], warp(law[None], settings)[0])


def test_tokens_of_probability_zero_stay_out():
    found = warped([0.5, 0.0, 0.5, 0.0], top_k=3, top_p=0.99)
    assert found == pytest.approx([0.5, 0, 0.5, 0])
    assert math.fsum(found) == pytest.approx(1)
