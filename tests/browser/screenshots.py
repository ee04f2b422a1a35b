"""Takes the README's pictures, of a finished race and of a step: python -m tests.browser.screenshots URL [PROMPT]"""

import shutil
import sys

from playwright.sync_api import sync_playwright

from tests.browser.conftest import ALL_OVER, FLAGS, ROOT

PROMPT = "Why is the sky blue? Answer in three sentences."


def main(url: str, prompt: str = PROMPT) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.goto(f"{url}/?example=&__theme=light")
        page.fill("#prompt textarea", prompt)
        page.click("#run")
        page.wait_for_selector(".lane .token", timeout=300_000)
        page.wait_for_function(ALL_OVER, timeout=600_000)
        page.wait_for_selector(".inspector .words:not(:empty)")
        page.keyboard.press("ArrowRight")
        for theme in ("light", "dark"):
            page.evaluate("dark => document.body.classList.toggle('dark', dark)", theme == "dark")
            page.wait_for_timeout(1500)
            bottom = page.evaluate("document.querySelector('#race').getBoundingClientRect().bottom + window.scrollY")
            part = {"x": 0, "y": 0, "width": 1440, "height": bottom + 20}
            page.screenshot(path=ROOT / "docs" / f"race-{theme}.png", full_page=True, clip=part)
            page.locator(".inspector").screenshot(path=ROOT / "docs" / f"step-{theme}.png")
        browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
