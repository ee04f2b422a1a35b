# make run    set everything up and open the page on http://127.0.0.1:7860
# make test   set everything up, lint, and run all tests (those in a browser too)
# make lint   ruff and mypy
# make audit  recompute every number of 240 traces without a cache (about an hour on two idle cores)
# make bench  measure methods and peers on forty prompts (an hour and a half on two idle cores); goes on where it was ended
# make examples  record the examples of assets/examples anew (ten minutes)
# make clean  remove the virtual environment and caches

PYTHON ?= python3
BIN := .venv/bin

.PHONY: run test lint format audit bench examples weights browser clean

run: .venv/run.stamp weights
	$(BIN)/python app.py

test: lint weights browser
	$(BIN)/python -m pytest

lint: .venv/dev.stamp
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/mypy app.py  # apart, since the package app has its name

format: .venv/dev.stamp
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

audit: .venv/dev.stamp weights
	$(BIN)/python -m tests.audit

bench: .venv/run.stamp weights
	$(BIN)/python -m decoding bench --max-new-tokens 128

examples: .venv/run.stamp weights
	$(BIN)/python -m app.record

weights: .venv/run.stamp
	$(BIN)/python -m decoding fetch

# Browser tests use the system's Chromium if there is one; else it is installed, by Debian's or by Playwright's means.
browser: .venv/dev.stamp
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null \
	|| (command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ] && apt-get update -qq \
	    && apt-get install -y -qq chromium fonts-noto-color-emoji fonts-noto-cjk >/dev/null) \
	|| $(BIN)/playwright install --with-deps chromium

.venv/run.stamp: requirements.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.12")'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements.txt
	touch $@

.venv/dev.stamp: .venv/run.stamp requirements-dev.txt
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	touch $@

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache
