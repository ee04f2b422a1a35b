"""What is shown of a lane."""

import json

from app.lanes import Spelling, lane_views, race_data
from decoding.lane import Lane, default_lanes
from decoding.settings import DecodingSettings
from tests.app.steps import make_step
from tests.app.unpack import lanes_of

SURFACES = {1: " the", 2: " sky", 3: "<0xF0><0x9F><0x98>", 4: "<0x80>", 5: "<|end|>"}
SPELLING = Spelling(SURFACES.__getitem__, frozenset({5}), frozenset({5}))


def view_of(method="speculative", settings=None):
    lanes = [Lane(method=method, settings=settings or DecodingSettings(max_new_tokens=4))]
    return lane_views(lanes, ["models"] * len(lanes), [SPELLING] * len(lanes))[0]


def written(view):
    return [(token["id"], token["origin"], token["step"]) for token in view.data()["tokens"]]


def test_refused_tokens_stand_behind_the_kept_part_of_their_block():
    view = view_of()
    view.add(make_step(emitted=[(1, "accepted"), (2, "resampled")], refused=[4, 1]))
    view.add(make_step(1, 2, emitted=[(1, "accepted")]))
    assert written(view) == [
        (1, "accepted", 0),
        (4, "refused", 0),
        (1, "refused", 0),
        (2, "resampled", 0),
        (1, "accepted", 1),
    ]


def test_characters_are_joined_across_steps_and_not_through_refused_tokens():
    view = view_of()
    view.add(make_step(emitted=[(3, "sampled")]))
    view.add(make_step(1, 1, emitted=[(4, "resampled")], refused=[2]))
    fragment, refused, completed = (token["parts"] for token in view.data()["tokens"])
    assert fragment == [("byte", "F0"), ("byte", "9F"), ("byte", "98")]
    assert refused == [("space", " "), ("text", "sky")]
    assert completed == [("text", "😀")]


def test_special_tokens_are_marked_as_such():
    view = view_of()
    view.add(make_step(emitted=[(5, "sampled")]))
    assert view.data()["tokens"][0]["parts"] == [("special", "<|end|>")]


def test_figures_are_those_of_the_steps():
    view = view_of()
    view.add(make_step(emitted=[(1, "accepted"), (2, "resampled")], refused=[4], target=0.5, draft=0.5, draft_passes=2))
    figures = {figure["name"]: figure["value"] for figure in view.data()["figures"]}
    assert figures == {
        "tokens": "2",
        "target passes": "1",
        "tokens / pass": "2.00",
        "tokens / s": "2.0",
        "time": "1.0 s",
        "perplexity": "2.00",
        "draft passes": "2",
        "acceptance": "50%",
        "energy": "not measured",
    }


def test_a_lane_that_has_not_begun_claims_nothing():
    figures = {figure["name"]: figure["value"] for figure in view_of().data()["figures"]}
    assert figures["perplexity"] == figures["acceptance"] == figures["tokens / s"] == "–"
    assert figures["energy"] == "not measured"


def test_progress_is_the_share_of_the_limit():
    view = view_of()
    view.add(make_step(emitted=[(1, "sampled")]))
    assert view.data()["progress"] == 0.25


def test_states_and_remarks():
    view = view_of()
    assert view.data()["state"] == "ready"
    view.add(make_step(emitted=[(1, "sampled")]))
    assert view.data()["state"] == "running"
    view.end("length")
    assert (view.data()["state"], view.data()["remark"]) == ("finished", "Finished: the limit of 4 tokens is reached.")
    stopped = view_of()
    stopped.end("cancelled")
    assert (stopped.data()["state"], stopped.data()["remark"]) == ("stopped", "Stopped before its end.")


def test_speed_is_compared_once_both_lanes_are_over():
    single, speculative, _ = views = lane_views(default_lanes(DecodingSettings()), ["models"] * 3, [SPELLING] * 3)
    single.add(make_step(emitted=[(1, "sampled")], target=1.0))
    speculative.add(make_step(emitted=[(1, "accepted"), (2, "bonus")], target=1.5, draft=0.5, draft_passes=1))
    single.end("length")
    assert lanes_of(race_data("r", views))[1]["speed"] is None
    speculative.end("length")
    assert lanes_of(race_data("r", views))[1]["speed"]["verdict"].startswith("1.00×")
    assert lanes_of(race_data("r", views))[0]["speed"]["verdict"] == "The yardstick."


def test_what_is_sent_is_what_the_lane_holds():
    view = view_of()
    view.add(make_step(emitted=[(1, "accepted"), (3, "resampled")], refused=[4]))
    assert lanes_of(race_data("r", [view])) == [json.loads(json.dumps(view.data()))]


def test_what_is_sent_of_the_tokens_only_grows():
    """So gradio sends what was added, and the script reads on from where it was."""
    view = view_of()
    before = view.packed()["tokens"]
    for index in range(3):
        view.add(make_step(index, index, emitted=[(2, "sampled")]))
        assert view.packed()["tokens"].startswith(before)
        before = view.packed()["tokens"]
    assert before.count("\n") == 3


def test_a_method_that_is_not_lossless_says_so():
    assert view_of("mtad").data()["promise"].startswith("Not lossless")
    assert view_of("speculative").data()["promise"].startswith("Lossless")
