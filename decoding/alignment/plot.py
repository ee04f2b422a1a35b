"""The learning curve of one or more runs, as a figure for the model card; needs matplotlib, which nothing else here does."""

import json
from collections.abc import Sequence
from pathlib import Path

CURVES = {"alpha": "T = 1, top-k 10, top-p 0.9", "alpha_greedy": "T = 0"}


def read_logs(folders: Sequence[Path]) -> list[dict[str, float]]:
    """The logged figures of runs that each went on from the one before, with tokens counted over all of them."""
    points: list[dict[str, float]] = []
    for folder in folders:
        before = points[-1]["tokens"] if points else 0.0
        lines = (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()
        points += [point | {"tokens": before + point["tokens"]} for point in map(json.loads, lines)]
    return points


def plot_curve(points: Sequence[dict[str, float]], file: Path) -> None:
    """Held-out acceptance rate against training tokens."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3.6), layout="constrained")
    axes = figure.add_subplot(
        xlabel="training tokens (every epoch counts)", ylabel="held-out acceptance rate α", ylim=(0, 0.6)
    )
    for key, label in CURVES.items():
        axes.plot([point["tokens"] for point in points], [point[key] for point in points], marker="o", label=label)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(file, metadata={"Date": None} if file.suffix == ".svg" else None)
