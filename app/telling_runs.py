"""Sentences about recorded runs: their numbers and tokens are filled in from the traces, so that they cannot be wrong."""

from collections.abc import Iterator, Sequence
from math import exp
from types import SimpleNamespace

from app.figures.text import number, ratio, shorten
from app.inspector import visible
from app.lanes import Spelling
from app.places import Place, first_refused, least_deserved, rescued
from decoding.trace import Step, Trace, Verdict

COLUMNS = 40  # of a token
TEXT_COLUMNS = 60
Facts = SimpleNamespace


def fill(template: str, traces: Sequence[Trace], place: Place) -> str:
    """A text with what it names in braces: of a lane by its method, of the step at `place` as `here`.

    For example "{mtad.passes}", "{here.token}"; the names are those in `run_facts` and `step_facts`.

    Raises:
        AttributeError, KeyError: it names something that is not there.
    """
    trace = traces[place.lane]
    here = step_facts(trace, trace.steps[place.step], place.token)
    return template.format(here=here, **{trace.method: run_facts(trace) for trace in traces})


def run_facts(trace: Trace) -> Facts:
    """Figures of a whole run."""
    metrics = trace.result.metrics
    facts = {
        "vocabulary": f"{trace.target.vocabulary:,}",
        "tokens": str(metrics.tokens),
        "passes": str(metrics.target_passes),
        "draft_passes": str(metrics.draft_passes),
        "per_pass": number(metrics.tokens_per_target_pass or 0),
        "perplexity": number(metrics.perplexity or 0),
        "distinct_2": f"{100 * (metrics.distinct_2 or 0):.0f} %",
        "text": f"“{shorten(' '.join(trace.result.text.split()), TEXT_COLUMNS)}”",
        "target_milliseconds": f"{1000 * metrics.target_seconds / max(1, metrics.target_passes):.0f}",
        "seconds": f"{metrics.seconds:.1f}",
    }
    if metrics.draft_passes:
        facts["draft_milliseconds"] = f"{1000 * metrics.draft_seconds / metrics.draft_passes:.0f}"
    if metrics.acceptance_rate is not None:
        facts["acceptance"] = f"{100 * metrics.acceptance_rate:.0f} %"
    return Facts(**facts)


def step_facts(trace: Trace, step: Step, token: int) -> Facts:
    """Figures of a step, and of one of its tokens; only those that it has."""
    spelling = Spelling(trace.tokens.__getitem__, frozenset(trace.special_ids), frozenset(trace.eos_ids))
    spell = visible(spelling)

    def quote(*tokens: int) -> str:
        return f"“{shorten(''.join(map(spell, tokens)), COLUMNS)}”"

    choice, taken = step.choices[token], step.emitted[token].token
    law = sorted(choice.top, key=lambda c: -c.p_warped)
    facts = {
        "step": str(step.index + 1),
        "token": quote(taken),
        "p": number(next(c.p_warped for c in law if c.token == taken)),
        "likeliest": quote(law[0].token),
        "likeliest_p": number(law[0].p_warped),
        "entropy": f"{choice.entropy_p:.2f}",
        "possible": str(sum(c.p_warped > 0 for c in law)),
        "written": str(len(step.emitted)),
        "drafted": str(len(step.verdicts)),
        "kept": str(sum(verdict.accepted for verdict in step.verdicts)),
        "block": quote(*(verdict.token for verdict in step.verdicts)),
    }
    for name, verdict in _named(step):
        facts |= {f"{name}_{key}": value for key, value in _verdict_facts(verdict).items()}
        facts[name] = quote(verdict.token)
    return Facts(**facts)


def _named(step: Step) -> Iterator[tuple[str, Verdict]]:
    """The verdicts that sentences speak of."""
    kept = [verdict for verdict in step.verdicts if verdict.accepted]
    named = {
        "last_kept": kept[-1] if kept else None,
        "refused": first_refused(step),
        "failing": next(iter(rescued(step)), None),
        "poorest": least_deserved(step),
    }
    return ((name, verdict) for name, verdict in named.items() if verdict)


def _verdict_facts(verdict: Verdict) -> dict[str, str]:
    facts = {
        "depth": str(verdict.depth),
        "p": number(exp(verdict.log_p)),
        "q": number(exp(verdict.log_q)),
        "ratio": number(ratio(verdict.log_p, verdict.log_q)),
        "joint": number(ratio(verdict.joint_log_p, verdict.joint_log_q)),
    }
    if verdict.uniform is not None:
        facts["draw"] = number(verdict.uniform)
    if verdict.threshold is not None:
        facts["threshold"] = number(verdict.threshold)
    return facts
