"""The acceptance rules on values worked out by hand."""

import math

import pytest
import torch

from decoding.methods.acceptance import acceptance_probability, kept_prefix, prefix_passes, residual, running_sum


def logs(*probabilities: float) -> list[float]:
    return [math.log(p) if p else -math.inf for p in probabilities]


def test_acceptance_probability():
    assert acceptance_probability(math.log(0.2), math.log(0.8)) == pytest.approx(0.25)
    assert acceptance_probability(math.log(0.8), math.log(0.2)) == 1.0
    assert acceptance_probability(-math.inf, math.log(0.2)) == 0.0


def test_residual():
    log_p, log_q = (
        torch.tensor(logs(*law), dtype=torch.float64) for law in ([0.5, 0.3, 0.2, 0.0], [0.2, 0.2, 0.2, 0.4])
    )
    left = residual(log_p, log_q).exp()
    assert (left / left.sum()).tolist() == pytest.approx([0.75, 0.25, 0.0, 0.0])


def test_residual_of_equal_laws_is_the_law():
    law = torch.tensor(logs(0.5, 0.3, 0.2))
    assert torch.equal(residual(law, law), law)


def joint(*probabilities: float) -> list[float]:
    return [math.log(math.prod(probabilities[:j])) for j in range(1, len(probabilities) + 1)]


GOLDEN_P, GOLDEN_Q = joint(0.5, 0.02, 0.9, 0.9), joint(0.6, 0.5, 0.6, 0.6)


def test_the_golden_case():
    ratios = [math.exp(p - q) for p, q in zip(GOLDEN_P, GOLDEN_Q, strict=True)]
    assert ratios == pytest.approx([0.8333, 0.0333, 0.05, 0.075], abs=5e-5)
    assert kept_prefix(GOLDEN_P, GOLDEN_Q, 0.05) == 4
    assert prefix_passes(GOLDEN_P, GOLDEN_Q, 0.051) == [True, False, False, True]


@pytest.mark.parametrize(("threshold", "kept"), [(0.9, 0), (0.5, 1), (0.076, 1), (0.07, 4), (0.01, 4)])
def test_the_longest_prefix_that_passes_is_kept(threshold, kept):
    assert kept_prefix(GOLDEN_P, GOLDEN_Q, threshold) == kept


def test_a_token_that_the_target_cannot_say_ends_all_longer_prefixes():
    log_p = running_sum(logs(0.9, 0.0, 1.0))
    assert log_p == [pytest.approx(math.log(0.9)), -math.inf, -math.inf]
    assert kept_prefix(log_p, running_sum(logs(0.5, 0.5, 0.5)), 0.01) == 1


def test_a_ratio_of_exactly_the_threshold_does_not_pass():
    assert kept_prefix([0.0, 0.0], [0.0, 0.0], 1.0) == 0
    assert kept_prefix([], [], 0.5) == 0
