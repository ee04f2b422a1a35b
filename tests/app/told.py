"""Collects the figures of a run's step that a sentence about it may have."""

import re
from collections.abc import Sequence
from math import exp

from app.figures.text import number
from app.places import Place
from decoding.trace import Trace


def decimals(text: str) -> set[str]:
    """All numbers with a point in a text."""
    return set(re.findall(r"\d+\.\d+", text))


def figures_of(traces: Sequence[Trace], place: Place) -> set[str]:
    """Figures of the step's verdicts and laws, and of all runs as a whole."""
    step = traces[place.lane].steps[place.step]
    values = [
        exp(value)
        for v in step.verdicts
        for value in (v.log_p, v.log_q, v.log_p - v.log_q, v.joint_log_p - v.joint_log_q)
    ]
    values += [value for v in step.verdicts for value in (v.uniform, v.threshold) if value is not None]
    values += [c.p_warped for c in step.choices[place.token].top]
    metrics = [trace.result.metrics for trace in traces]
    values += [value for m in metrics for value in (m.perplexity, m.tokens_per_target_pass) if value is not None]
    rounded = {f"{step.choices[place.token].entropy_p:.2f}", *(f"{m.seconds:.1f}" for m in metrics)}
    return rounded | {number(value) for value in values}
