"""What is made of a bench's outcomes: one row for each contestant, as records, Markdown and CSV."""

import csv
import io
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from statistics import fmean, quantiles

from decoding.bench.record import Bench, Outcome
from decoding.bench.roofline import floor_seconds, flops
from decoding.metrics import distinct, ratio


@dataclass(frozen=True)
class Spread:
    """A median, and the quartiles around it."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """Of at least one value."""
        low, middle, high = quantiles(values, n=4, method="inclusive") if len(values) > 1 else [*values] * 3
        return cls(middle, low, high)


@dataclass(frozen=True)
class Row:
    """A contestant's figures over all its runs. None where there is nothing to take a figure of.

    Attributes:
        tokens_per_second: emitted tokens over the whole call's time, prompt included.
        tokens_per_target_pass, acceptance: of all runs together; peers count the prompt's pass, which emits a token.
        perplexity: exp(−mean log p) of all emitted tokens under the plain, unwarped target.
        distinct_1, distinct_2, distinct_3: different n-grams per n-gram of a text, on average.
        joules_per_token: measured.
        bytes_per_token, flops_per_token: estimates: weights read, and operations, for each emitted token.
        target_floor, draft_floor: by how much the average pass takes longer than the roofline's floor.
        peak_gpu_bytes: most GPU memory of any run.
    """

    contestant: str
    title: str
    runs: int
    tokens: int
    tokens_per_second: Spread
    first_token_seconds: Spread
    target_passes: int
    draft_passes: int
    tokens_per_target_pass: float | None
    acceptance: float | None
    perplexity: float
    distinct_1: float | None
    distinct_2: float | None
    distinct_3: float | None
    target_pass_seconds: float | None
    draft_pass_seconds: float | None
    target_floor: float | None
    draft_floor: float | None
    bytes_per_token: float
    flops_per_token: float
    joules_per_token: float | None
    peak_gpu_bytes: int | None


def rows(bench: Bench) -> list[Row]:
    """A row for each contestant, in their order."""
    by_name = {name: [o for o in bench.outcomes if o.contestant == name] for name in bench.plan.contestants}
    return [
        _row(bench, name, title, by_name[name])
        for name, title in zip(bench.plan.contestants, bench.titles, strict=True)
        if by_name[name]
    ]


def _row(bench: Bench, name: str, title: str, runs: Sequence[Outcome]) -> Row:
    tokens = sum(len(run.tokens) for run in runs)
    passes = sum(run.target_passes for run in runs)
    drafted = [run.drafted for run in runs if run.drafted is not None]
    joules = [run.joules for run in runs if run.joules is not None]
    peaks = [run.peak_bytes for run in runs if run.peak_bytes is not None]
    return Row(
        contestant=name,
        title=title,
        runs=len(runs),
        tokens=tokens,
        tokens_per_second=Spread.of([len(run.tokens) / run.seconds for run in runs]),
        first_token_seconds=Spread.of([run.first_token_seconds for run in runs]),
        target_passes=passes,
        draft_passes=sum(run.draft_passes for run in runs),
        tokens_per_target_pass=ratio(tokens, passes),
        acceptance=ratio(sum(run.accepted or 0 for run in runs), sum(drafted)) if drafted else None,
        perplexity=math.exp(-math.fsum(run.log_p for run in runs) / tokens),
        distinct_1=_distinct(runs, 1),
        distinct_2=_distinct(runs, 2),
        distinct_3=_distinct(runs, 3),
        target_pass_seconds=_pass_seconds(runs, "target"),
        draft_pass_seconds=_pass_seconds(runs, "draft"),
        target_floor=_over_floor(bench, runs, "target"),
        draft_floor=_over_floor(bench, runs, "draft"),
        bytes_per_token=sum(_weight_bytes(bench, runs)) / tokens,
        flops_per_token=sum(_flops(bench, runs)) / tokens,
        joules_per_token=ratio(math.fsum(joules), tokens) if len(joules) == len(runs) else None,
        peak_gpu_bytes=max(peaks, default=None),
    )


def _distinct(runs: Sequence[Outcome], n: int) -> float | None:
    values = [value for run in runs if (value := distinct(run.tokens, n)) is not None]
    return fmean(values) if values else None


def _pass_seconds(runs: Sequence[Outcome], model: str) -> float | None:
    return ratio(_total(runs, f"{model}_seconds"), _total(runs, f"{model}_passes"))


def _total(runs: Sequence[Outcome], name: str) -> float:
    return math.fsum(getattr(run, name) for run in runs)


def _over_floor(bench: Bench, runs: Sequence[Outcome], model: str) -> float | None:
    passes, info = _total(runs, f"{model}_passes"), getattr(bench.plan, model)
    if not passes or bench.rates is None:
        return None
    fed = _total(runs, f"{model}_tokens") / passes
    floor = floor_seconds(bench.rates, bench.weight_bytes[model], info.parameters, fed)  # type: ignore[index]
    return _total(runs, f"{model}_seconds") / passes / floor


def _weight_bytes(bench: Bench, runs: Sequence[Outcome]) -> Iterator[float]:
    for model, size in bench.weight_bytes.items():
        yield size * _total(runs, f"{model}_passes")


def _flops(bench: Bench, runs: Sequence[Outcome]) -> Iterator[float]:
    for model in bench.weight_bytes:
        yield flops(getattr(bench.plan, model).parameters, _total(runs, f"{model}_tokens"))


@dataclass(frozen=True)
class Column:
    """A column of the Markdown table."""

    head: str
    cell: Callable[[Row], str]


def _spread(spread: Spread, digits: int) -> str:
    return f"{spread.median:.{digits}f} ({spread.low:.{digits}f} to {spread.high:.{digits}f})"


def _figure(value: float | None, digits: int = 2, missing: str = "–") -> str:
    return missing if value is None else f"{value:.{digits}f}"


COLUMNS = (
    Column("contestant", lambda row: row.title),
    Column("tokens/s", lambda row: _spread(row.tokens_per_second, 1)),
    Column("first token, s", lambda row: _figure(row.first_token_seconds.median)),
    Column("tokens/target pass", lambda row: _figure(row.tokens_per_target_pass)),
    Column("acceptance", lambda row: _figure(row.acceptance)),
    Column("perplexity", lambda row: _figure(row.perplexity)),
    Column("distinct-1/2/3", lambda row: " / ".join(_figure(row_value) for row_value in _distincts(row))),
    Column("target pass, ms (× floor)", lambda row: _pass_cell(row.target_pass_seconds, row.target_floor)),
    Column("draft pass, ms (× floor)", lambda row: _pass_cell(row.draft_pass_seconds, row.draft_floor)),
    Column("est. GB read/token", lambda row: _figure(row.bytes_per_token / 1e9)),
    Column("est. GFLOP/token", lambda row: _figure(row.flops_per_token / 1e9)),
    Column("J/token", lambda row: _figure(row.joules_per_token, missing="not measured")),
)


def _distincts(row: Row) -> tuple[float | None, ...]:
    return row.distinct_1, row.distinct_2, row.distinct_3


def _pass_cell(seconds: float | None, floor: float | None) -> str:
    return "–" if seconds is None else f"{1000 * seconds:.1f} ({_figure(floor, 1)})"


def markdown(bench: Bench) -> str:
    """The table, with what it was made of below."""
    table = rows(bench)
    lines = [[column.head for column in COLUMNS], ["---"] * len(COLUMNS)]
    lines += [[column.cell(row).replace("|", "\\|") for column in COLUMNS] for row in table]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n\n" + "\n".join(notes(bench)) + "\n"


def notes(bench: Bench) -> list[str]:
    """What one has to know to read the table, a sentence a line."""
    plan, machine = bench.plan, bench.machine
    settings = plan.settings
    said = [
        f"{len(plan.prompts)} prompts × {len(plan.seeds)} seeds, at most {settings.max_new_tokens} tokens, temperature "
        f"{settings.temperature:g}, top-k {settings.top_k}, top-p {settings.top_p:g}, γ {settings.draft_length}, "
        f"b {settings.beam_width}, τ {settings.threshold:g}.",
        "Tokens/s and first token: medians over prompts, whole call, prompt included; quartiles in brackets.",
        f"Target {plan.target.name} ({plan.target.dtype})"
        + (f", draft {plan.draft.name} ({plan.draft.dtype})" if plan.draft else "")
        + f"; peers and the perplexity's judge in {plan.plain_dtype}.",
        f"{machine.processor}, {machine.cores} cores, {machine.threads} threads, {machine.device}; "
        f"torch {machine.torch}, transformers {machine.transformers}; {machine.date}.",
    ]
    if bench.rates:
        said.append(
            f"Floor of a pass: its weights at {bench.rates.bytes_per_second / 1e9:.1f} GB/s, or its products at "
            f"{bench.rates.flops_per_second / 1e9:.0f} GFLOP/s, whichever takes longer; both rates measured here."
        )
    if machine.peak_rss_bytes:
        said.append(f"Peak memory of the process, both pairs of models in it: {machine.peak_rss_bytes / 1e9:.2f} GB.")
    return said


def to_csv(bench: Bench) -> str:
    """A line for each contestant; spreads take three columns."""
    out = io.StringIO()
    lines = [_flat(row) for row in rows(bench)]
    writer = csv.DictWriter(out, fieldnames=list(lines[0]) if lines else [f.name for f in fields(Row)])
    writer.writeheader()
    writer.writerows(lines)
    return out.getvalue()


def _flat(row: Row) -> dict[str, object]:
    flat: dict[str, object] = {}
    for name, value in asdict(row).items():
        parts = {f"{name}_{part}": v for part, v in value.items()} if isinstance(value, dict) else {name: value}
        flat |= parts
    return flat
