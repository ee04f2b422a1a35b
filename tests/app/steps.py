"""Steps made by hand."""

from decoding.trace import Cost, Emitted, Step, Verdict

LOG_HALF = -0.6931471805599453


def make_step(index=0, start=0, emitted=(), refused=(), *, target=1.0, draft=0.0, draft_passes=0, seconds=None) -> Step:
    """A step; `emitted` are (token, origin) pairs, each with probability 1/2; times are in seconds."""
    kept = [token for token, origin in emitted if origin == "accepted"]
    block = [(token, True) for token in kept] + [(token, False) for token in refused]
    return Step.model_construct(
        index=index,
        start=start,
        draft=None,
        verdicts=tuple(make_verdict(depth, *entry) for depth, entry in enumerate(block, start=1)),
        emitted=tuple(Emitted(token=token, origin=origin, log_p=LOG_HALF) for token, origin in emitted),
        discarded=(),
        choices=(),
        cost=Cost(
            target_passes=1,
            target_tokens=1,
            draft_passes=draft_passes,
            draft_tokens=draft_passes,
            target_seconds=target,
            draft_seconds=draft,
            seconds=target + draft if seconds is None else seconds,
            joules=None,
        ),
    )


def make_verdict(depth, token, accepted) -> Verdict:
    numbers = {
        "log_p": -1.0,
        "log_q": -1.0,
        "joint_log_p": -1.0,
        "joint_log_q": -1.0,
        "uniform": None,
        "threshold": None,
    }
    return Verdict(depth=depth, token=token, passes=accepted, accepted=accepted, **numbers)
