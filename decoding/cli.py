"""The command line: one function per command, each returning an exit status."""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError
from tqdm.auto import tqdm

from decoding.bench.contestants import DEFAULT as CONTESTANTS
from decoding.bench.peers import PEERS
from decoding.bench.prompts import read_prompts
from decoding.bench.run import Asked, plain_dtype, run_bench
from decoding.bench.table import markdown, to_csv
from decoding.decode import Decoding, decode
from decoding.gap import GapSummary, summarise, trace_gaps
from decoding.lane import DEFAULT_METHODS, Lane, Lanes, lane_titles
from decoding.language_model import DTYPES, UnsupportedModel
from decoding.methods import METHODS
from decoding.pair import ModelPair, VocabularyMismatch
from decoding.presets import DEFAULT_PRESET, PRESETS
from decoding.race import race
from decoding.replay import Difference, replay
from decoding.settings import DecodingSettings
from decoding.surface import readable_text
from decoding.threads import leave_a_core
from decoding.trace import Metrics, Trace
from decoding.trace_file import MAX_BYTES, InvalidTrace, read_traces
from decoding.weights import WeightsError, locate

FINISH = {"eos": "end of text", "stop": "stop string", "length": "length limit", "cancelled": "cancelled"}


class UsageError(Exception):
    """Something on the command line that cannot be done; the message says what and why."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; errors a user can mend are one sentence on stderr, and status 2."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.command(options))
    except (UsageError, WeightsError, UnsupportedModel, VocabularyMismatch, ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


def run_command(options: argparse.Namespace) -> int:
    """Decode one prompt with one method; the text goes to stdout as it is written, figures to stderr."""
    settings = _settings(options)
    prompt = _prompt(options)
    out = _writable(options.out)
    pair = _load(options, preset=options.preset, needs_draft=METHODS[options.method].drafts)
    decoding = Decoding(options.method, pair, prompt, settings)
    try:
        _stream(decoding, quiet=options.json)
    except KeyboardInterrupt:
        print("\ninterrupted: what there is so far is kept", file=sys.stderr)
    trace = decoding.trace()
    if out:
        out.write_text(trace.model_dump_json() + "\n", encoding="utf-8")
        print(f"trace written to {out}", file=sys.stderr)
    if options.json:
        print(trace.model_dump_json())
    else:
        print(_summary(trace), file=sys.stderr)
    return 0 if decoding.finished else 130


def compare_command(options: argparse.Namespace) -> int:
    """Decode one prompt in two to four lanes, advanced fairly, and print a table of their figures."""
    settings = _settings(options)
    lanes = _lanes(options, settings)
    prompt = _prompt(options)
    folder = _writable_folder(options.out)
    pairs = _pairs(options, lanes)
    decodings = [Decoding(lane.method, pairs[lane.preset], prompt, lane.settings) for lane in lanes]
    total = sum(lane.settings.max_new_tokens for lane in lanes)
    with tqdm(total=total, unit="token", file=sys.stderr, leave=False, disable=None) as bar:
        for _, step in race(decodings):
            bar.update(len(step.emitted))
    titles, traces = lane_titles(lanes), [decoding.trace() for decoding in decodings]
    if folder:
        for number, trace in enumerate(traces, start=1):
            (folder / f"{number}-{trace.method}.json").write_text(trace.model_dump_json() + "\n", encoding="utf-8")
        print(f"{len(traces)} traces written to {folder}", file=sys.stderr)
    if options.json:
        results = [
            {"lane": title, "method": trace.method, **trace.result.model_dump(mode="json")}
            for title, trace in zip(titles, traces, strict=True)
        ]
        print(json.dumps(results, ensure_ascii=False, indent=2))
    else:
        for title, trace in zip(titles, traces, strict=True):
            print(f"── {title}\n{trace.result.text}\n")
        print(_table(titles, traces))
    return 0


def replay_command(options: argparse.Namespace) -> int:
    """Run the traces of a file again with the same models; status 0 only if every step is reproduced."""
    traces = _read_traces(options.trace)
    pairs: dict[tuple[str | None, ...], ModelPair] = {}
    differ = False
    for number, trace in enumerate(traces, start=1):
        target = options.target or _known(trace.target.source, "--target")
        draft = options.draft or (_known(trace.draft.source, "--draft") if trace.draft else None)
        dtype = options.dtype if options.dtype != "auto" or trace.target.dtype not in DTYPES else trace.target.dtype
        device = "cpu" if trace.target.device == "cpu" else None
        wanted = (target, draft, dtype, device)
        if wanted not in pairs:
            pairs[wanted] = ModelPair.load(target, draft, dtype=dtype, device=device)
        outcomes = list(
            tqdm(
                replay(trace, pairs[wanted]),
                total=len(trace.steps),
                unit="step",
                file=sys.stderr,
                leave=False,
                disable=None,
            )
        )
        _report_replay(outcomes, trace, number if len(traces) > 1 else None, as_json=options.json)
        differ |= any(outcomes)
    return int(differ)


def _report_replay(outcomes: Sequence[Difference | None], trace: Trace, number: int | None, *, as_json: bool) -> None:
    """`number` is the trace's in its file, where there are several."""
    reproduced = sum(outcome is None for outcome in outcomes)
    differences = [vars(outcome) for outcome in outcomes if outcome]
    if as_json:
        which = {} if number is None else {"trace": number}
        report = which | {"steps": len(trace.steps), "reproduced": reproduced, "differences": differences}
        print(json.dumps(report, ensure_ascii=False))
        return
    which_one = "" if number is None else f"trace {number}, {trace.method}: "
    print(f"{which_one}{reproduced} of {len(trace.steps)} steps reproduced")
    for difference in differences:
        where = "before the first step" if difference["step"] is None else f"step {difference['step']}"
        print(f"{where}: {difference['what']}")


def gap_command(options: argparse.Namespace) -> int:
    """Say by how much the blocks that MTAD keeps fall short of the target's most probable ones, by γ and b."""
    settings = _settings(options)
    pair = _load(options, preset=options.preset, needs_draft=True)
    grid = list(product(options.lengths, options.widths))
    rows = []
    for length, width in tqdm(grid, unit="setting", file=sys.stderr, leave=False, disable=None):
        changes = {"draft_length": length, "beam_width": width}
        made = DecodingSettings.model_validate({**dict(settings), **changes})
        traces = [decode("mtad", pair, prompt, made) for prompt in options.prompt]
        rows.append(summarise(length, width, [gap for trace in traces for gap in trace_gaps(pair.target, trace)]))
    if options.json:
        print(json.dumps([asdict(row) for row in rows]))
    else:
        print(_gap_table(rows))
    return 0


def bench_command(options: argparse.Namespace) -> int:
    """Measure methods and peers on the same prompts, in turn; what was measured stays in the folder, also if it is ended."""
    asked = Asked(
        contestants=tuple(options.contestant or CONTESTANTS),
        prompts=read_prompts(options.prompts, options.per_kind)
        if options.prompts
        else read_prompts(per_kind=options.per_kind),
        seeds=tuple(range(options.seeds)),
        settings=_settings(options),
    )
    options.out.mkdir(parents=True, exist_ok=True)
    leave_a_core()  # as the page does
    target, draft = options.target or PRESETS[options.preset].target, options.draft or PRESETS[options.preset].draft
    device, dtype = options.device, plain_dtype(options.device)
    plain = ModelPair.load(target, draft, device=device, dtype=dtype)
    bench = run_bench(asked, ModelPair.load(target, draft, device=device, dtype=options.dtype), plain, options.out)
    if bench:
        for name, text in (
            ("bench.json", bench.model_dump_json()),
            ("bench.csv", to_csv(bench)),
            ("bench.md", markdown(bench)),
        ):
            (options.out / name).write_text(text, encoding="utf-8")
        print(bench.model_dump_json() if options.json else markdown(bench))
    return 0


def fetch_command(options: argparse.Namespace) -> int:
    """Bring the weights of a pair to this machine, so that later runs need no network."""
    sources = [options.target or PRESETS[options.preset].target, options.draft or PRESETS[options.preset].draft]
    folders = {source: str(locate(source)) for source in sources}
    if options.json:
        print(json.dumps(folders, ensure_ascii=False))
    else:
        for source, folder in folders.items():
            print(f"{source}: {folder}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m decoding",
        description="Decode with single-token sampling, speculative decoding or MTAD, and record every decision.",
        epilog='Example: python -m decoding run --method mtad --prompt "Why is the sky blue?" --seed 0 --out trace.json',
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    run = _command(commands, "run", run_command)
    run.add_argument("--method", choices=METHODS, default="mtad", help="default: %(default)s")
    _add_prompt(run)
    run.add_argument("--out", type=Path, metavar="FILE", help="write the trace to this file")
    _add_models(run)
    _add_settings(run)

    compare = _command(commands, "compare", compare_command)
    lanes = compare.add_mutually_exclusive_group()
    lanes.add_argument(
        "--methods",
        nargs="+",
        choices=METHODS,
        default=DEFAULT_METHODS,
        metavar="METHOD",
        help=f"one lane per method: {', '.join(METHODS)} (default: {' '.join(DEFAULT_METHODS)})",
    )
    lanes.add_argument(
        "--lane",
        action="append",
        metavar="METHOD[,SETTING=VALUE…]",
        help="a lane with settings of its own, e.g. mtad,threshold=0.1 or speculative,preset=gpt2-xl; give two to four",
    )
    _add_prompt(compare)
    compare.add_argument("--out", type=Path, metavar="FOLDER", help="write one trace per method into this folder")
    _add_models(compare)
    _add_settings(compare)

    again = _command(commands, "replay", replay_command)
    again.add_argument("trace", type=Path, help="a trace file, of one run or of a race")
    _add_models(again, preset=False)

    gap = _command(commands, "gap", gap_command)
    gap.add_argument("--prompt", required=True, action="append", metavar="TEXT", help="may be given several times")
    gap.add_argument("--lengths", type=int, nargs="+", default=[2, 3], metavar="γ", help="default: 2 3")
    gap.add_argument("--widths", type=int, nargs="+", default=[1, 2, 4], metavar="b", help="default: 1 2 4")
    _add_models(gap)
    _add_settings(gap)

    bench = _command(commands, "bench", bench_command)
    bench.add_argument(
        "--contestant",
        action="append",
        metavar="NAME[,SETTING=VALUE…]",
        help=f"a method, or a peer: {', '.join(PEERS)}; may be given several times (default: {'; '.join(CONTESTANTS)})",
    )
    bench.add_argument("--prompts", type=Path, metavar="FILE", help="a JSON object of lists of prompts, by kind")
    bench.add_argument("--per-kind", type=int, metavar="N", help="use only the first N prompts of each kind")
    bench.add_argument("--seeds", type=int, default=1, metavar="N", help="seeds 0 to N − 1 (default: %(default)s)")
    bench.add_argument(
        "--out",
        type=Path,
        default=Path("build/bench"),
        metavar="FOLDER",
        help="where results are kept (default: %(default)s)",
    )
    bench.add_argument("--device", metavar="DEVICE", help="cpu, cuda, … (default: a GPU if there is one)")
    _add_models(bench)
    _add_settings(bench, without=("seed",))

    fetch = _command(commands, "fetch", fetch_command)
    _add_models(fetch, dtype=False)
    return parser


def _command(commands: Any, name: str, function: Any) -> argparse.ArgumentParser:
    command = commands.add_parser(name, help=function.__doc__.split(";")[0].rstrip("."), description=function.__doc__)
    command.set_defaults(command=function)
    command.add_argument("--json", action="store_true", help="print JSON to stdout instead of text")
    return command


def _add_prompt(command: argparse.ArgumentParser) -> None:
    command.add_argument("--prompt", required=True, metavar="TEXT", help="the prompt; '-' reads it from stdin")


def _add_models(command: argparse.ArgumentParser, *, preset: bool = True, dtype: bool = True) -> None:
    group = command.add_argument_group(
        "models", "a source is a local folder, a Hub repository id or a packaged model's name"
    )
    if preset:
        group.add_argument(
            "--preset", choices=PRESETS, default=DEFAULT_PRESET, help="a known pair (default: %(default)s)"
        )
    group.add_argument("--target", metavar="SOURCE", help="the target, instead of the known one")
    group.add_argument("--draft", metavar="SOURCE", help="the draft, instead of the known one")
    if dtype:
        group.add_argument(
            "--dtype",
            choices=["auto", *DTYPES],
            default="auto",
            help="how weights are kept; auto is what is fast here, or what a trace says",
        )


def _add_settings(command: argparse.ArgumentParser, without: Sequence[str] = ()) -> None:
    """One flag per setting, named, described and bounded by the settings themselves."""
    group = command.add_argument_group("settings")
    for name, field in DecodingSettings.model_fields.items():
        if name in without:
            continue
        flag = f"--{name.replace('_', '-')}"
        description = f"{field.description} (default: {field.default})"
        if name == "stop":
            group.add_argument(
                flag, action="append", metavar="TEXT", help=f"{field.description}; may be given several times"
            )
        elif field.annotation is bool:
            group.add_argument(flag, action=argparse.BooleanOptionalAction, default=None, help=description)
        else:
            choices = get_args(field.annotation) or None
            group.add_argument(flag, choices=choices, metavar=None if choices else "N", help=description)


def _settings(options: argparse.Namespace) -> DecodingSettings:
    given = {
        name: value for name in DecodingSettings.model_fields if (value := getattr(options, name, None)) is not None
    }
    try:
        return DecodingSettings.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        flag = f"--{str(first['loc'][0]).replace('_', '-')}"
        raise UsageError(f"{flag} {first['input']}: {first['msg'][0].lower()}{first['msg'][1:]}") from error


def _prompt(options: argparse.Namespace) -> str:
    return sys.stdin.read() if options.prompt == "-" else options.prompt


def _lanes(options: argparse.Namespace, settings: DecodingSettings) -> tuple[Lane, ...]:
    described = options.lane or options.methods
    try:
        return Lanes.validate_python(tuple(Lane.parse(text, settings, options.preset) for text in described))
    except ValidationError as error:
        first = error.errors()[0]
        raise UsageError(
            f"lane {' '.join(map(str, first['loc']))}: {first['msg'].removeprefix('Value error, ')}"
        ) from error


def _pairs(options: argparse.Namespace, lanes: Sequence[Lane]) -> dict[str, ModelPair]:
    """Each pair that the lanes name, loaded once; --target and --draft stand in for those of --preset."""
    names = {lane.preset for lane in lanes}
    drafting = {lane.preset for lane in lanes if METHODS[lane.method].drafts}
    return {name: _load(options, preset=name, needs_draft=name in drafting) for name in names}


def _load(options: argparse.Namespace, *, preset: str, needs_draft: bool) -> ModelPair:
    """A pair; a draft that no method needs is not loaded."""
    target, draft = PRESETS[preset].target, PRESETS[preset].draft
    if preset == options.preset:
        target, draft = options.target or target, options.draft or draft
    return ModelPair.load(target, draft if needs_draft else None, dtype=options.dtype)


def _known(source: str, flag: str) -> str:
    """A source named in a trace file, if it is one of ours: a file must not choose what is fetched or opened."""
    if source in {name for preset in PRESETS.values() for name in (preset.target, preset.draft)}:
        return source
    raise UsageError(
        f"the trace names the model '{source[:200]}', which is not a known one: say where it is with {flag}."
    )


def _read_traces(path: Path) -> tuple[Trace, ...]:
    with path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    try:
        return read_traces(data)
    except InvalidTrace as error:
        raise UsageError(f"{path} is not a trace: {error}") from error


def _writable(path: Path | None) -> Path | None:
    """The path, once it is sure that the result can be stored there; better before the work than after it."""
    if path is None:
        return None
    if path.is_dir() or not path.parent.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise UsageError(f"{path} cannot be written: name a file in a folder that exists and is writable.")
    return path


def _writable_folder(path: Path | None) -> Path | None:
    if path:
        path.mkdir(parents=True, exist_ok=True)
    return path


def _stream(decoding: Decoding, *, quiet: bool) -> None:
    tokens: list[int] = []
    shown = 0
    for step in decoding:
        tokens += [emitted.token for emitted in step.emitted]
        text = readable_text(decoding.pair.target.tokenizer, tokens).rstrip("\N{REPLACEMENT CHARACTER}")
        if not quiet:
            print(text[shown:], end="", flush=True)
        shown = len(text)
    if not quiet:
        print()


def _summary(trace: Trace) -> str:
    metrics = trace.result.metrics
    parts = [
        f"{metrics.tokens} tokens ({FINISH[trace.result.finish_reason]})",
        f"{metrics.target_passes} target passes",
        f"{_figure(metrics.tokens_per_target_pass)} tokens per target pass",
        f"{_figure(metrics.tokens_per_second)} tokens/s",
        f"perplexity {_figure(metrics.perplexity)}",
    ]
    if metrics.acceptance_rate is not None:
        parts.append(f"acceptance rate {_figure(metrics.acceptance_rate)}")
    return " · ".join(parts)


COLUMNS = {
    "tokens": "tokens",
    "target passes": "target_passes",
    "draft passes": "draft_passes",
    "tokens/pass": "tokens_per_target_pass",
    "accepted": "acceptance_rate",
    "perplexity": "perplexity",
    "distinct-2": "distinct_2",
    "tokens/s": "tokens_per_second",
    "energy (J)": "joules",
}


GAP_COLUMNS = {
    "γ": "length",
    "b": "width",
    "steps": "steps",
    "kept something": "kept",
    "its tokens": "tokens",
    "gap (nats)": "mean",
    "largest": "largest",
    "exactly best": "best",
    "evaluations": "evaluations",
    "unproven": "unproven",
}


def _gap_table(rows: Sequence[GapSummary]) -> str:
    cells = [[_figure(getattr(row, name)) for name in GAP_COLUMNS.values()] for row in rows]
    return _columns([list(GAP_COLUMNS), *cells])


def _table(titles: Sequence[str], traces: Sequence[Trace]) -> str:
    rows = [["lane", *COLUMNS, "ended by"]]
    for title, trace in zip(titles, traces, strict=True):
        figures = [_cell(trace.result.metrics, name) for name in COLUMNS.values()]
        rows.append([title, *figures, FINISH[trace.result.finish_reason]])
    return _columns(rows)


def _columns(rows: Sequence[Sequence[str]]) -> str:
    """Cells in columns, each as wide as its widest cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def _cell(metrics: Metrics, name: str) -> str:
    value = getattr(metrics, name)
    if value is None:
        return "not measured" if name == "joules" else "–"
    return _figure(value)


def _figure(value: float | None) -> str:
    if value is None:
        return "–"
    return str(value) if isinstance(value, int) else f"{value:.2f}"
