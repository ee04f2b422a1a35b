"""Promises that the project's files make to each other."""

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).parent.parent


def front_matter() -> dict:
    return yaml.safe_load((ROOT / "README.md").read_text().split("---")[1])


def test_the_space_runs_the_gradio_that_was_tested():
    pinned = re.search(r"^gradio==(.+)$", (ROOT / "requirements.txt").read_text(), re.MULTILINE)
    assert front_matter()["sdk_version"] == pinned[1]


def test_the_space_is_described():
    described = front_matter()
    assert described["sdk"] == "gradio"
    assert described["app_file"] == "app.py"
    assert (ROOT / described["app_file"]).is_file()
    assert described["license"] == "apache-2.0"
    assert len(described["short_description"]) <= 60


def test_pictures_and_files_named_in_the_readme_exist():
    readme = (ROOT / "README.md").read_text()
    links = re.findall(r"\]\(([^)#:]+)\)", readme) + re.findall(r'src(?:set)?="([^":]+)"', readme)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_arrows_between_the_rooms_point_one_way():
    for source in (ROOT / "decoding").rglob("*.py"):
        imported = re.findall(r"^\s*(?:from|import) (\w+)", source.read_text(), re.MULTILINE)
        assert not {"app", "gradio", "plotly"} & set(imported), source
    for source in (ROOT / "app").rglob("*.py"):
        assert "torch" not in re.findall(r"^\s*(?:from|import) (\w+)", source.read_text(), re.MULTILINE), source
