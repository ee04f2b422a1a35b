"""On ZeroGPU the compute runs in a forked worker: only plain data crosses, and Stop works between two steps."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def test_a_race_and_a_stopped_race_in_a_forked_worker():
    stand_in = str(Path(__file__).parent / "zero_gpu")
    surroundings = os.environ | {"SPACES_ZERO_GPU": "true", "PYTHONPATH": os.pathsep.join([stand_in, str(ROOT)])}
    command = [sys.executable, "-m", "tests.app.zero_gpu.race"]
    done = subprocess.run(command, cwd=ROOT, env=surroundings, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.strip().splitlines()[-1])
    assert told["passes_here"] == 0
    assert told["endings"][0] == ["finished"] * 3
    assert "stopped" in told["endings"][1]
    assert told["left"] == 0
