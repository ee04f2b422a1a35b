"""Losses between the draft's law q and the target's law p.

Both are given as log-probabilities over the tokens that the draft can say, (positions, tokens). What p has elsewhere is
a constant of each loss, since q has nothing there.
"""

from collections.abc import Callable

import torch
from torch import Tensor

Loss = Callable[[Tensor, Tensor], Tensor]


def forward_kl(log_q: Tensor, log_p: Tensor) -> Tensor:
    """KL(p‖q) = Σ p (log p − log q), in nats, mean over positions."""
    return (log_p.exp() * (log_p - log_q)).sum(-1).mean()


def total_variation(log_q: Tensor, log_p: Tensor) -> Tensor:
    """TV(q, p) = ½ Σ |q − p| = 1 − Σ min(q, p), mean over positions; one minus the acceptance rate."""
    missed = -torch.expm1(log_p.logsumexp(-1))
    return 0.5 * ((log_q.exp() - log_p.exp()).abs().sum(-1) + missed).mean()


def total_variation_plus(log_q: Tensor, log_p: Tensor) -> Tensor:
    """TVD++ (Goel et al. 2024): total variation as a policy gradient, its rewards normalised over the batch.

    ∇TV(q, p) = E_{x~q}[∇log q(x) · (−r(x))] with r = 1[p > q]. TVD++ puts the advantage (r − μ)/σ in the place of r. Here the expectation, μ and σ
    are taken over the whole law, not over samples. Then μ changes nothing (E_q ∇log q = 0) and the gradient is that of TV, scaled
    up by 1/σ where few tokens earn a reward. The value itself is no distance: only the gradient counts.
    """
    q = log_q.detach().exp()
    rewards = (log_p > log_q.detach()).to(q.dtype)
    return -(q * advantages(rewards, q) * log_q).sum(-1).mean()


def advantages(rewards: Tensor, q: Tensor) -> Tensor:
    """(r − μ)/σ, with μ and σ under x ~ q over all positions; zero where all rewards are equal."""
    mean = (q * rewards).sum(-1).mean()
    deviation = ((q * (rewards - mean) ** 2).sum(-1).mean()).sqrt()
    if deviation == 0:
        return torch.zeros_like(rewards)
    return (rewards - mean) / deviation


LOSSES: dict[str, Loss] = {"kl": forward_kl, "tvd": total_variation, "tvd++": total_variation_plus}
