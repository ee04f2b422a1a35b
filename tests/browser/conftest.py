"""A server with scripted models, and a page of it in the system's Chromium."""

import json
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Page

ROOT = Path(__file__).parent.parent.parent
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
FLAGS += ["--disable-component-update", "--disable-sync"]
ALL_OVER = (
    "[...document.querySelectorAll('.lane')].every(l => ['finished', 'stopped', 'failed'].includes(l.dataset.state))"
)


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args):
    system = shutil.which("chromium") or shutil.which("google-chrome")
    where = {"executable_path": system} if system else {}
    return browser_type_launch_args | where | {"args": FLAGS, "headless": True}


@dataclass(frozen=True)
class Server:
    """Where the page is, and where its models' passes are counted."""

    url: str
    counter: str

    def passes(self) -> int:
        """Forward passes of both models since the server started."""
        with urllib.request.urlopen(self.counter) as response:
            return sum(json.load(response).values())


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    port, counter = free_port(), free_port()
    command = [sys.executable, "-m", "tests.browser.launcher", str(port), str(counter)]
    process = subprocess.Popen(command, cwd=ROOT)
    try:
        server = Server(f"http://127.0.0.1:{port}", f"http://127.0.0.1:{counter}")
        wait_for(lambda: answers(server.url), seconds=180)
        yield server
    finally:
        process.terminate()
        process.wait()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def answers(url: str) -> bool:
    try:
        return urllib.request.urlopen(url, timeout=10).status == 200
    except OSError:
        return False


def wait_for(condition: Callable[[], bool], seconds: float) -> None:
    """Raises TimeoutError if the condition does not come to hold."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(0.1)


@dataclass
class Race:
    """The page, in the words of someone who uses it."""

    page: Page
    server: Server
    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def open(self, query: str = "?example=") -> "Race":
        """Open the page, by default without the recorded run that it would show."""
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda line: self.errors.append(line.text) if line.type == "error" else None)
        with self.page.expect_response("**/gradio_api/run/predict*", timeout=60_000):  # what the address asks for
            self.page.goto(self.server.url + "/" + query)
        self.page.wait_for_selector(".lane", timeout=60_000)
        self.page.wait_for_selector("#run:not([disabled])", timeout=60_000)
        return self

    def setting(self, label: str, value: int) -> None:
        if not self.page.locator("#settings").get_by_label(label).first.is_visible():
            self.page.click("#settings > button")
        box = self.page.locator("#settings").get_by_role("spinbutton", name=label)
        for _ in range(5):  # a field that has only just come into view may still be given its first value
            box.fill(str(value))
            box.blur()
            self.page.wait_for_timeout(50)
            if box.input_value() == str(value):
                return
        raise AssertionError(f"{label} does not keep {value}")

    def run(self, prompt: str) -> None:
        self.page.fill("#prompt textarea", prompt)
        self.page.click("#run")

    def wait_until_over(self, prompt_shown: str = ".lane .token") -> None:
        self.page.wait_for_selector(prompt_shown, timeout=60_000)
        self.page.wait_for_function(ALL_OVER, timeout=60_000)

    def status(self) -> str:
        return self.page.text_content("#status .status-text") or ""

    def wait_for_status(self, words: str) -> str:
        locator = self.page.locator("#status .status-text", has_text=words)
        locator.wait_for(timeout=30_000)
        return self.status()

    def states(self) -> list[str]:
        return self.page.eval_on_selector_all(".lane", "lanes => lanes.map(lane => lane.dataset.state)")

    def texts(self) -> list[str]:
        """The text of each lane as it can be copied, refused tokens and unfinished characters left out."""
        return self.page.eval_on_selector_all(
            ".lane",
            """lanes => lanes.map(lane => [...lane.querySelectorAll('.token:not(.refused)')].map(token => {
                const copy = token.cloneNode(true);
                copy.querySelectorAll('.byte').forEach(part => part.remove());
                return copy.textContent;
            }).join(''))""",
        )


@pytest.fixture
def race(page: Page, server: Server) -> Race:
    return Race(page, server).open()
