"""A race and a stopped race as ZeroGPU runs them; prints the passes that this process has made, and how the races ended."""

import json

from app.engine import make_engine
from app.models import Models
from app.runner import Runner
from app.runs import Runs
from app.settings_form import read_lanes
from decoding.settings import DecodingSettings
from tests.app.unpack import lanes_of
from tests.browser.scripted import PRESETS, scripted_pair


def main() -> None:
    pair, runs = scripted_pair(0.001), Runs()
    models = Models(PRESETS, lambda key: pair)
    models.load_here()
    runner = Runner(models, runs, make_engine(models, runs))

    whole = list(runner.moments(runner.request("me", "plain", read_lanes(None, DecodingSettings(max_new_tokens=8)))))[
        -1
    ]

    moments = runner.moments(runner.request("me", "plain", read_lanes(None, DecodingSettings(max_new_tokens=400))))
    while not next(moments).race:
        pass
    runs.stop("me")
    stopped = list(moments)[-1]
    endings = [[lane["state"] for lane in lanes_of(moment.race)] for moment in (whole, stopped)]
    print(json.dumps({"passes_here": pair.target.passes, "endings": endings, "left": runs.count}))


if __name__ == "__main__":
    main()
