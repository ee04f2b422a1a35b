"""The laws behind each emitted token, boiled down to what a trace keeps."""

from collections.abc import Sequence

import torch
from torch import Tensor

from decoding.trace import Candidate, Choice

TOP = 10


def record_choices(
    tokens: Sequence[int],
    log_p: Tensor,
    warped_log_p: Tensor,
    log_q: Tensor | None = None,
    warped_log_q: Tensor | None = None,
) -> list[Choice]:
    """One `Choice` per emitted token.

    Args:
        tokens: the n tokens taken.
        log_p, warped_log_p: (n or more, vocabulary), the target's law before each token.
        log_q, warped_log_q: (m, vocabulary), the draft's law before each of the first m tokens; the draft was not asked
            for the others.
    """
    n = len(tokens)
    log_p, warped_log_p = log_p[:n], warped_log_p[:n]
    ids = torch.cat([_top(log_p), torch.tensor(tokens, device=log_p.device).unsqueeze(-1)], dim=-1)
    if log_q is None or warped_log_q is None:
        return _choices(ids, log_p, warped_log_p)
    log_q, warped_log_q = log_q[:n], warped_log_q[:n]
    m = len(log_q)
    with_draft = torch.cat([ids[:m], _top(log_q)], dim=-1)
    choices = _choices(with_draft, log_p[:m], warped_log_p[:m], log_q, warped_log_q)
    return choices + (_choices(ids[m:], log_p[m:], warped_log_p[m:]) if m < n else [])


def _top(log_laws: Tensor) -> Tensor:
    return log_laws.topk(min(TOP, log_laws.shape[-1])).indices


def _choices(
    ids: Tensor,
    log_p: Tensor,
    warped_log_p: Tensor,
    log_q: Tensor | None = None,
    warped_log_q: Tensor | None = None,
) -> list[Choice]:
    laws = (log_p, warped_log_p, log_q, warped_log_q)
    columns = [law.gather(-1, ids).exp().tolist() if law is not None else None for law in laws]
    entropies = [law_entropy(log_p), law_entropy(log_q) if log_q is not None else None]
    choices = []
    for row, row_ids in enumerate(ids.tolist()):
        numbers = zip(row_ids, *(column[row] if column else [None] * len(row_ids) for column in columns), strict=True)
        by_token = {i: Candidate(token=i, p=p, p_warped=pw, q=q, q_warped=qw) for i, p, pw, q, qw in numbers}
        top = sorted(by_token.values(), key=lambda candidate: (-candidate.p, candidate.token))
        entropy_p, entropy_q = (entropy[row] if entropy else None for entropy in entropies)
        choices.append(Choice(top=tuple(top), entropy_p=entropy_p, entropy_q=entropy_q))
    return choices


def law_entropy(log_laws: Tensor) -> list[float]:
    """Entropy of each row of (rows, vocabulary) log-probabilities, in nats."""
    summands = log_laws.exp() * log_laws
    return (-summands.nan_to_num_(nan=0.0).sum(-1)).tolist()  # 0 · −∞ is NaN; its limit is 0
