"""Single-token sampling: one token from the target's law, one pass each."""

from collections.abc import Iterator

from decoding.methods.choices import record_choices
from decoding.run import Run
from decoding.trace import Emitted, Step


def single_token(run: Run) -> Iterator[Step]:
    """Ordinary sampling from the warped target law; greedy decoding at temperature 0."""
    run.prefill(run.target)
    while not run.finish_reason:
        run.start_step()
        log_p = run.target.feed(run.pending(run.target))
        warped = run.warp(log_p)
        token = run.streams.target.draw(warped[0])
        emitted = Emitted(token=token, origin="sampled", log_p=float(log_p[0, token]))
        yield run.finish_step([emitted], record_choices([token], log_p, warped))
