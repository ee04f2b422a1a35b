"""Decoding Explorer: builds the page and serves it. What `python app.py` and a Space run."""

from app.server import default_runner, serve
from app.surroundings import ZERO_GPU

if __name__ == "__main__":
    runner = default_runner()
    if ZERO_GPU:
        runner.models.load_here()
    else:
        runner.models.wanted([runner.models.default])  # in the background: the page is there first
    serve(runner)
