"""The gap of MTAD to exact MTJD, against enumeration on toys; and its command."""

import json
import math

import pytest

from decoding.cli import main
from decoding.decode import decode
from decoding.enumeration import Toys
from decoding.gap import block_gap, compared_law, summarise, trace_gaps
from decoding.methods import METHODS
from decoding.settings import DecodingSettings
from decoding.streams import Streams
from decoding.toy import hashed
from tests.decoding import naive
from tests.decoding.tiny import PROMPT, tiny_pair

TEXT = (1, 0)


@pytest.mark.parametrize("temperature", [0.0, 0.8])
@pytest.mark.parametrize("seed", range(4))
def test_the_gap_is_that_of_enumeration(seed, temperature):
    target, draft = hashed(4, seed), hashed(4, seed + 100)
    made = DecodingSettings(temperature=temperature, top_k=3, draft_length=3, threshold=0.2, max_new_tokens=20)
    p = naive.warped(target.law_of, made) if temperature else target.law_of
    run = Toys(METHODS["mtad"].steps, target, draft, TEXT, made, frozenset({3})).run(Streams.seeded(seed, "gap"))
    context, text, compared = target.open(), TEXT, 0
    for step in METHODS["mtad"].steps(run):
        verdicts = [verdict for verdict in step.verdicts if verdict.accepted]
        kept = tuple(verdict.token for verdict in verdicts)
        if kept:
            gap = block_gap(context, text, verdicts, warp_law=compared_law(made), eos_ids=frozenset({3}))
            blocks = naive.chain_rule(p, text, len(kept), {3})
            best = max(blocks.values())
            assert blocks[gap.block] == best
            assert gap.nats == pytest.approx(math.log(best) - math.log(naive.joint(p, text, kept)), abs=1e-12)
            assert gap.nats > -1e-12
            assert gap.is_proven
            compared += 1
        text = (*text, *(token.token for token in step.emitted))
    assert compared


def test_steps_that_kept_nothing_are_counted_apart():
    summary = summarise(2, 4, [None, None])
    assert (summary.steps, summary.kept, summary.mean, summary.largest) == (2, 0, None, None)


@pytest.mark.slow
def test_the_command_prints_a_row_for_each_setting(capsys):
    words = ["gap", "--prompt", "Hi", "--lengths", "2", "--widths", "1", "2", "--max-new-tokens", "6", "--json"]
    assert main(words) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["length"], row["width"]) for row in rows] == [(2, 1), (2, 2)]
    assert all(row["mean"] is None or row["mean"] > -1e-3 for row in rows)


def test_the_gaps_of_a_trace_follow_its_steps():
    pair = tiny_pair("Llama")
    trace = decode(
        "mtad", pair, PROMPT, DecodingSettings(temperature=0, max_new_tokens=12, draft_length=2, threshold=0.1)
    )
    gaps = list(trace_gaps(pair.target, trace))
    assert len(gaps) == len(trace.steps)
    assert all(gap is None or gap.nats > -1e-4 for gap in gaps)
