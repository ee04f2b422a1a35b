"""The joint probabilities by depth, and the comparison that decided.

Above, log P and log Q of every prefix of the chosen block. Below, what the method compares: the joint ratio P/Q with τ; in
speculative decoding the token's own p/q with the draw u; in typical acceptance its p with what is asked there.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, inf

from app.figures.style import LIGHT, NO_LABEL, Figure, depth_axis, kept_band
from app.figures.text import number, ratio
from decoding.trace import Step, Verdict

MARGIN = {"l": 52, "r": 10, "t": 12, "b": 44}
UPPER, LOWER = [0.55, 1.0], [0.0, 0.45]
LEAST_RATIO, MOST_RATIO = 1e-3, 1e2
NEAR_FLOOR = 2e-2
NATS_PER_DEPTH = 3  # of room for joint log-probabilities
MOST_LABELLED = 8


Rule = str  # a method's name, or "tree": MTAD where the whole tree is verified


def joint(step: Step, rule: Rule, *, length: int) -> Figure | None:
    """The verdicts of a step; None if it has none.

    What lies beyond an axis stands at its edge with an arrow; a probability of 0, whose logarithm is −∞, stands there too,
    as "P = 0".

    Args:
        rule: what decided.
        length: γ of the run, for axes that are the same at every step.
    """
    if not step.verdicts:
        return None
    floor = -(NATS_PER_DEPTH * length + 1.0)
    verdicts = step.verdicts
    kept = sum(verdict.accepted for verdict in verdicts)
    bar = "max Q" if rule == "tree" else "Q"
    by_token = BY_TOKEN.get(rule)
    return {
        "data": [
            *_logs(verdicts, floor, bar),
            *(_bars(verdicts, length, by_token) if by_token else _ratios(verdicts, length, bar)),
        ],
        "layout": {
            "margin": MARGIN,
            "xaxis": depth_axis(length) | {"anchor": "y", "showgrid": False},
            "yaxis": {"domain": LOWER} | (_token_axis(by_token.axis) if by_token else _ratio_axis(bar)),
            "yaxis2": {
                "domain": UPPER,
                "anchor": "x",
                "range": [floor, 1],
                "nticks": 4,
                "title": {"text": "joint log-prob."},
            },
            "shapes": kept_band(kept, yref="paper", y0=0, y1=1)
            + ([] if by_token else [_threshold(verdicts[0].threshold or 0.0)]),
        },
    }


def _logs(verdicts: Sequence[Verdict], floor: float, bar: str) -> list[Figure]:
    depths = [verdict.depth for verdict in verdicts]
    series = {
        "P": ([verdict.joint_log_p for verdict in verdicts], LIGHT["target"], "circle", "solid"),
        bar: ([verdict.joint_log_q for verdict in verdicts], LIGHT["draft"], "square-open", "dash"),
    }
    return [
        {
            "type": "scatter",
            "mode": "lines+markers+text",
            "x": depths,
            "y": [max(value, floor + 1.5) for value in values],
            "yaxis": "y2",
            "line": {"color": colour, "width": 2, "dash": dash},
            "marker": {
                "symbol": ["x-thin-open" if value == -inf else symbol for value in values],
                "size": 9,
                "line": {"width": 2, "color": colour},
            },
            "text": [f"{name} = 0" if value == -inf else "↓" if value < floor else NO_LABEL for value in values],
            "textposition": "bottom center",
            "textfont": {"size": 10, "color": LIGHT["muted"]},
            "cliponaxis": False,
            "hoverinfo": "text",
            "hovertext": [
                f"depth {depth}<br>log {name} = {'−∞' if value == -inf else f'{value:.3f}'}"
                for depth, value in zip(depths, values, strict=True)
            ],
        }
        for name, (values, colour, symbol, dash) in series.items()
    ]


def _ratios(verdicts: Sequence[Verdict], length: int, bar: str) -> list[Figure]:
    ratios = [ratio(verdict.joint_log_p, verdict.joint_log_q) for verdict in verdicts]
    shown = [min(max(value, 1.6 * LEAST_RATIO), MOST_RATIO / 4) for value in ratios]
    texts = [_ratio_text(value, verdict) for value, verdict in zip(ratios, verdicts, strict=True)]
    return [
        {
            "type": "scatter",
            "mode": "lines+markers+text" if length <= MOST_LABELLED else "lines+markers",
            "x": [verdict.depth for verdict in verdicts],
            "y": shown,
            "line": {"color": LIGHT["line"], "width": 1.5},
            "marker": _marks(verdicts),
            "text": texts,
            "textposition": [
                "top center" if verdict.passes or value < NEAR_FLOOR else "bottom center"  # away from the line of τ
                for value, verdict in zip(ratios, verdicts, strict=True)
            ],
            "textfont": {"size": 11, "color": LIGHT["ink"]},
            "cliponaxis": False,
            "hoverinfo": "text",
            "hovertext": [
                f"depth {verdict.depth}<br>P/{bar} = {number(value)} {'>' if verdict.passes else '≤'} τ = "
                f"{number(verdict.threshold or 0)}<br>{_fate(verdict)}"
                for value, verdict in zip(ratios, verdicts, strict=True)
            ],
        }
    ]


def _ratio_text(value: float, verdict: Verdict) -> str:
    if value == 0:
        return "P = 0"
    arrow = "↓" if value < LEAST_RATIO else "↑" if value > MOST_RATIO else ""
    rescued = "<br>rescued" if verdict.accepted and not verdict.passes else ""
    return f"{number(value, 2)}{arrow}{rescued}"


@dataclass(frozen=True)
class ByToken:
    """What a rule that judges token by token compares: a bar, and a mark that decides by standing inside it or above."""

    bar_name: str
    bar: Callable[[Verdict], float]
    mark: Callable[[Verdict], float | None]
    fate: Callable[[Verdict], str]
    axis: str


def _drawn(verdict: Verdict) -> str:
    if verdict.uniform is None:
        return "not tested: an earlier token was refused"
    return f"u = {number(verdict.uniform)}: {'kept' if verdict.accepted else 'refused'}"


def _asked(verdict: Verdict) -> str:
    reason = "" if verdict.accepted == verdict.passes else ": an earlier token was dropped"
    return f"asked: more than {number(verdict.threshold or 0)}<br>{_fate(verdict)}{reason}"


BY_TOKEN = {
    "speculative": ByToken(
        "p/q", lambda v: ratio(v.log_p, v.log_q), lambda v: v.uniform, _drawn, axis="min(1, p/q), u"
    ),
    "typical": ByToken("p̃", lambda v: exp(v.log_p), lambda v: v.threshold, _asked, axis="p̃, asked"),
}


def _bars(verdicts: Sequence[Verdict], length: int, rule: ByToken) -> list[Figure]:
    depths = [verdict.depth for verdict in verdicts]
    values, marks = [rule.bar(verdict) for verdict in verdicts], [rule.mark(verdict) for verdict in verdicts]
    return [
        {
            "type": "bar",
            "x": depths,
            "y": [min(1.0, value) for value in values],
            "width": 0.5,
            "marker": {"color": LIGHT["target"], "opacity": [0.15 if mark is None else 0.4 for mark in marks]},
            "text": ["p = 0" if value == 0 else number(value, 2) for value in values]
            if length <= MOST_LABELLED
            else None,
            "textposition": "outside",
            "textfont": {"size": 11, "color": LIGHT["ink"]},
            "cliponaxis": False,
            "hoverinfo": "text",
            "hovertext": [
                f"depth {verdict.depth}<br>{rule.bar_name} = {number(value)}<br>{rule.fate(verdict)}"
                for value, verdict in zip(values, verdicts, strict=True)
            ],
        },
        {
            "type": "scatter",
            "mode": "markers",
            "x": depths,
            "y": marks,
            "marker": _marks(verdicts),
            "hoverinfo": "text",
            "hovertext": [f"depth {verdict.depth}<br>{rule.fate(verdict)}" for verdict in verdicts],
        },
    ]


def _marks(verdicts: Sequence[Verdict]) -> Figure:
    """Passing is a filled dot, failing a cross."""
    return {
        "symbol": ["circle" if verdict.passes else "x" for verdict in verdicts],
        "color": [LIGHT["kept" if verdict.passes else "dropped"] for verdict in verdicts],
        "size": 10,
        "line": {"width": 1, "color": LIGHT["card"]},
    }


def _fate(verdict: Verdict) -> str:
    if verdict.accepted and not verdict.passes:
        return "fails alone, kept with a longer prefix"
    return "kept" if verdict.accepted else "not kept"


def _threshold(value: float) -> Figure:
    return {
        "type": "line",
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "y0": value,
        "y1": value,
        "line": {"color": LIGHT["ink"], "width": 1.5, "dash": "dash"},
    }


def _ratio_axis(bar: str) -> Figure:
    return {
        "type": "log",
        "range": [-3, 2],
        "tickvals": [0.001, 0.01, 0.1, 1, 10, 100],
        "ticktext": ["0.001", "0.01", "0.1", "1", "10", "100"],
        "title": {"text": f"ratio P/{bar}"},
    }


def _token_axis(title: str) -> Figure:
    return {"range": [0, 1.25], "tickvals": [0, 0.5, 1], "title": {"text": title}}
