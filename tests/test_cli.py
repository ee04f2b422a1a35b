"""The command line, as a person or a script uses it."""

import json

import pytest

from decoding.cli import main
from decoding.lane import MOST_LANES
from decoding.methods import METHODS
from decoding.trace import Trace
from decoding.trace_file import write_traces

FEW = ["--max-new-tokens", "8"]


def run(capsys, *arguments: str) -> tuple[int, str, str]:
    status = main(arguments)
    captured = capsys.readouterr()
    return status, captured.out, captured.err


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Traces of all methods: a race of as many as there is room for, and the others alone."""
    folder = tmp_path_factory.mktemp("traces") / "new" / "folder"
    racing, alone = list(METHODS)[:MOST_LANES], list(METHODS)[MOST_LANES:]
    prompt = ["--prompt", "Count to ten."]
    assert main(["compare", "--methods", *racing, *prompt, "--out", str(folder), *FEW]) == 0
    for method in alone:
        assert main(["run", "--method", method, *prompt, "--out", str(folder / f"alone-{method}.json"), *FEW]) == 0
    return folder


@pytest.mark.slow
def test_run_prints_the_text_and_writes_the_trace(capsys, tmp_path):
    out = tmp_path / "trace.json"
    status, text, figures = run(capsys, "run", "--method", "mtad", "--prompt", "Count to ten.", "--out", str(out), *FEW)
    trace = Trace.model_validate_json(out.read_text())
    assert status == 0
    assert text.strip() == trace.result.text.strip()
    assert (trace.method, trace.settings.max_new_tokens, len(trace.result.token_ids)) == ("mtad", 8, 8)
    assert "8 tokens (length limit)" in figures


@pytest.mark.slow
def test_json_output_is_json_alone(capsys):
    status, text, _ = run(capsys, "run", "--method", "single_token", "--prompt", "Hi", "--json", *FEW)
    assert status == 0
    assert Trace.model_validate(json.loads(text)).method == "single_token"


@pytest.mark.slow
def test_compare_prints_a_table_and_writes_every_trace(capsys, tmp_path):
    status, text, _ = run(capsys, "compare", "--prompt", "Count to ten.", "--out", str(tmp_path), *FEW)
    assert status == 0
    assert sorted(path.stem for path in tmp_path.glob("*.json")) == ["1-single_token", "2-speculative", "3-mtad"]
    table = text[text.index("lane  ") :].splitlines()
    assert [line.split("  ")[0] for line in table[1:]] == ["Single-token sampling", "Speculative decoding", "MTAD"]
    assert all("not measured" in line for line in table[1:])


@pytest.mark.slow
def test_lanes_may_differ_in_any_setting(capsys):
    lanes = ["--lane", "mtad,threshold=0.1,seed=3", "--lane", "mtad,threshold=0.9,seed=3"]
    status, text, _ = run(capsys, "compare", "--prompt", "Count to ten.", "--json", *lanes, *FEW)
    assert status == 0
    assert [lane["lane"] for lane in json.loads(text)] == ["MTAD · threshold 0.1", "MTAD · threshold 0.9"]


@pytest.mark.parametrize(
    ("lanes", "complaint"),
    [
        (["mtad"], "at least 2 items"),
        (["mtad"] * 5, "at most 4 items"),
        (["mtad", "magic"], "There is no method 'magic'"),
        (["mtad", "mtad,preset=none"], "There is no pair 'none'"),
        (["mtad", "mtad,threshold=7"], "less than or equal to 1"),
        (["mtad", "mtad,colour=red"], "colour"),
    ],
)
def test_lanes_that_cannot_be_are_refused(capsys, lanes, complaint):
    status, text, said = run(
        capsys, "compare", "--prompt", "Hi", *(part for lane in lanes for part in ("--lane", lane))
    )
    assert (status, text) == (2, "")
    assert complaint in said


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_replay_reproduces_a_recorded_trace(capsys, recorded, method):
    (file,) = recorded.glob(f"*-{method}.json")
    steps = len(Trace.model_validate_json(file.read_text()).steps)
    status, text, _ = run(capsys, "replay", str(file))
    assert (status, text) == (0, f"{steps} of {steps} steps reproduced\n")


@pytest.mark.slow
def test_the_traces_of_a_race_are_replayed_together(capsys, recorded, tmp_path):
    traces = [
        Trace.model_validate_json((recorded / name).read_text()) for name in ("1-single_token.json", "3-mtad.json")
    ]
    file = tmp_path / "race.json"
    file.write_text(write_traces(traces))
    status, text, _ = run(capsys, "replay", str(file))
    assert status == 0
    assert [line.split(":")[0] for line in text.splitlines()] == ["trace 1, single_token", "trace 2, mtad"]


@pytest.mark.slow
def test_replay_finds_an_altered_number(capsys, recorded, tmp_path):
    trace = json.loads((recorded / "3-mtad.json").read_text())
    trace["steps"][1]["verdicts"][0]["joint_log_q"] -= 0.01
    altered = tmp_path / "altered.json"
    altered.write_text(json.dumps(trace))
    status, text, _ = run(capsys, "replay", str(altered))
    assert status == 1
    assert text.startswith(f"1 of {len(trace['steps'])} steps reproduced\nstep 1: step.verdicts[0].joint_log_q:")


@pytest.mark.slow
def test_replay_does_not_open_models_that_a_file_names(capsys, recorded, tmp_path):
    trace = json.loads((recorded / "3-mtad.json").read_text())
    trace["target"]["source"] = "somebody/elses-model"
    foreign = tmp_path / "foreign.json"
    foreign.write_text(json.dumps(trace))
    status, _, complaint = run(capsys, "replay", str(foreign))
    assert status == 2
    assert "say where it is with --target" in complaint


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--temperature", "9"], "--temperature 9: input should be less than or equal to 5"),
        (["--threshold", "0"], "--threshold 0: input should be greater than 0"),
        (["--max-new-tokens", "0"], "--max-new-tokens 0: input should be greater than or equal to 1"),
        (["--top-k", "many"], "--top-k many: input should be a valid integer"),
        (["--out", "/no/such/folder/trace.json"], "cannot be written"),
        (["--target", "no-such-model"], "There is no model folder at 'no-such-model'"),
    ],
)
def test_bad_input_is_one_sentence_before_any_work(capsys, arguments, complaint):
    status, text, said = run(capsys, "run", "--prompt", "Hi", *arguments)
    assert (status, text) == (2, "")
    assert complaint in said
    assert len(said.strip().splitlines()) == 1


@pytest.mark.slow
@pytest.mark.parametrize(("prompt", "complaint"), [("  ", "The prompt is empty"), ("word " * 9000, "too long")])
def test_prompts_that_cannot_run_are_refused(capsys, prompt, complaint):
    status, _, said = run(capsys, "run", "--method", "single_token", "--prompt", prompt)
    assert status == 2
    assert complaint in said


@pytest.mark.parametrize("content", ["", "{}", "[1, 2]", '{"format": "decoding-trace/2"}', "\x00\xff", "{" * 100_000])
def test_files_that_are_no_traces_are_refused(capsys, tmp_path, content):
    file = tmp_path / "trace.json"
    file.write_text(content)
    status, _, said = run(capsys, "replay", str(file))
    assert status == 2
    assert "is not a trace" in said
    assert len(said) < 1000


def test_a_missing_file_is_named(capsys, tmp_path):
    status, _, said = run(capsys, "replay", str(tmp_path / "nothing.json"))
    assert status == 2
    assert "nothing.json" in said


@pytest.mark.parametrize("command", ["run", "compare", "replay", "fetch"])
def test_every_command_explains_itself(capsys, command):
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    assert "--json" in capsys.readouterr().out
