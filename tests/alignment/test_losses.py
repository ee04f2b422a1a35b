"""Losses against finite differences, torch and the acceptance rate they stand for."""

import pytest
import torch
from torch import Tensor

from decoding.alignment.losses import LOSSES, advantages, forward_kl, total_variation, total_variation_plus

POSITIONS, TOKENS = 5, 7


@pytest.fixture
def laws() -> tuple[Tensor, Tensor]:
    """Logits of q, log-law p; float64."""
    generator = torch.Generator().manual_seed(0)
    drawn = torch.randn(2, POSITIONS, TOKENS, generator=generator, dtype=torch.float64)
    return drawn[0], drawn[1].log_softmax(-1)


def gradient(loss, logits: Tensor, log_p: Tensor) -> Tensor:
    logits = logits.clone().requires_grad_()
    loss(logits.log_softmax(-1), log_p).backward()
    return logits.grad


def finite_differences(function, at: Tensor, width: float = 1e-6) -> Tensor:
    slopes = torch.zeros_like(at)
    for place in range(at.numel()):
        nudge = torch.zeros_like(at)
        nudge.view(-1)[place] = width
        slopes.view(-1)[place] = (function(at + nudge) - function(at - nudge)) / (2 * width)
    return slopes


def lemma(logits: Tensor, log_p: Tensor) -> Tensor:
    """E_{x~q}[∇log q(x) · (−r(x))], written out: ∂log q(x)/∂logit_j = 1[x = j] − q(j)."""
    q = logits.softmax(-1)
    rewards = (log_p.exp() > q).double()
    scores = torch.eye(TOKENS, dtype=torch.float64) - q[:, None, :]
    return torch.einsum("nx,nxj,nx->nj", q, scores, -rewards) / POSITIONS


def test_gradient_of_half_the_distance_is_the_lemma(laws):
    logits, log_p = laws
    half_distance = finite_differences(lambda z: 0.5 * (z.softmax(-1) - log_p.exp()).abs().sum(-1).mean(), logits)
    assert torch.allclose(half_distance, lemma(logits, log_p), atol=1e-8)
    assert torch.allclose(half_distance, gradient(total_variation, logits, log_p), atol=1e-8)


def test_tvd_plus_is_the_lemma_over_the_deviation_of_the_rewards(laws):
    logits, log_p = laws
    q = logits.softmax(-1)
    rewards = (log_p.exp() > q).double()
    mean = (q * rewards).sum(-1).mean()
    deviation = (mean * (1 - mean)).sqrt()  # rewards are 0 or 1
    assert torch.allclose(gradient(total_variation_plus, logits, log_p), lemma(logits, log_p) / deviation, atol=1e-10)


def test_advantages_have_mean_zero_and_deviation_one_under_the_draft(laws):
    logits, log_p = laws
    q = logits.softmax(-1)
    scaled = advantages((log_p.exp() > q).double(), q)
    assert (q * scaled).sum(-1).mean().item() == pytest.approx(0, abs=1e-12)
    assert (q * scaled**2).sum(-1).mean().item() == pytest.approx(1)


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_equal_laws_give_no_gradient(laws, loss):
    log_p = laws[1]
    slopes = gradient(loss, log_p, log_p.log_softmax(-1))
    assert torch.allclose(slopes, torch.zeros_like(slopes), atol=1e-12)


def test_equal_rewards_give_no_advantage():
    q = torch.full((2, 4), 0.25)
    for reward in (0.0, 1.0):
        assert torch.equal(advantages(torch.full((2, 4), reward), q), torch.zeros(2, 4))


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_a_small_step_raises_the_acceptance_rate(laws, loss):
    logits, log_p = laws
    stepped = logits - 1e-3 * gradient(loss, logits, log_p)

    def acceptance(z: Tensor) -> float:
        return torch.minimum(z.softmax(-1), log_p.exp()).sum(-1).mean().item()

    assert acceptance(stepped) > acceptance(logits)


def test_kl_equals_that_of_torch(laws):
    logits, log_p = laws
    log_q = logits.log_softmax(-1)
    expected = torch.nn.functional.kl_div(log_q, log_p, log_target=True, reduction="batchmean")
    assert forward_kl(log_q, log_p).item() == pytest.approx(expected.item())


def test_total_variation_counts_what_the_draft_cannot_say(laws):
    logits, log_p = laws
    log_q = logits[:, :-1].log_softmax(-1)
    overlap = torch.minimum(log_q.exp(), log_p[:, :-1].exp()).sum(-1).mean()
    assert total_variation(log_q, log_p[:, :-1]).item() == pytest.approx(1 - overlap.item())
