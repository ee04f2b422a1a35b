"""Records the examples on the default pair: python -m app.record [NAME …]"""

import gzip
import sys
from collections.abc import Sequence

from app.examples import Example, examples, make_recording
from decoding.decode import Decoding
from decoding.lane import DEFAULT_METHODS
from decoding.pair import ModelPair
from decoding.presets import DEFAULT_PRESET, PRESETS
from decoding.race import race
from decoding.trace import Trace
from decoding.trace_file import InvalidTrace, write_traces


def record(example: Example, pair: ModelPair) -> list[Trace]:
    """A race of the default methods on an example."""
    lanes = [Decoding(method, pair, example.prompt, example.settings) for method in DEFAULT_METHODS]
    for _ in race(lanes):
        pass
    return [lane.trace() for lane in lanes]


def main(names: Sequence[str]) -> int:
    """Record the named examples, or all; a run without what it was to show is not kept, and status is 1."""
    preset = PRESETS[DEFAULT_PRESET]
    pair = ModelPair.load(preset.target, preset.draft)
    failed = False
    for name in names or examples():
        example = examples()[name]
        traces = record(example, pair)
        try:
            recording = make_recording(example, traces)
        except InvalidTrace as error:
            print(error, file=sys.stderr)
            failed = True
            continue
        example.file.write_bytes(gzip.compress(write_traces(traces).encode(), mtime=0))
        print(f"{name}: {recording.look_at}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
