"""The report is one file, and text in it cannot become part of its page."""

import json
import re

import pytest

from app.downloads import file_name
from app.report import report
from decoding.decode import decode
from decoding.settings import DecodingSettings
from tests.browser.scripted import scripted_pair

HOSTILE = 'hazard </script><script>window.harmed=1</script> <!-- "'


@pytest.fixture(scope="module")
def traces():
    return [decode(method, scripted_pair(0.0), HOSTILE, DecodingSettings(max_new_tokens=8)) for method in ("mtad",)]


def test_data_stays_in_its_element_and_means_the_same(traces):
    page = report(traces)
    scripts = re.findall(r"<script[^>]*>(.*?)</script>", page, flags=re.DOTALL)
    assert len(scripts) == 3
    data = json.loads(scripts[0])
    assert data["about"]["prompt"] == HOSTILE
    assert data["race"]["lanes"][0]["tokens"].count("\n") == len(
        [line for line in data["race"]["lanes"][0]["tokens"].split("\n") if line]
    )
    assert "window.harmed=1</script>" not in page


def test_nothing_is_fetched_from_elsewhere(traces):
    page = report(traces)
    assert "default-src 'none'" in page
    without_scripts = re.sub(r">.*?</script>", "></script>", page, flags=re.DOTALL)
    assert not re.search(r"<[^>]+ (src|href)=", without_scripts)


def test_names_of_files_are_plain(traces):
    assert file_name(traces, "html") == "decoding-hazard-script-script-window-harmed-1.html"
