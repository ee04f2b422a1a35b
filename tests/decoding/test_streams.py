"""Draws follow the laws they are made from, and streams know nothing of each other."""

import itertools

import numpy as np
import pytest
import torch

from decoding.enumeration import Decisions, ToldStream
from decoding.streams import SeededStream, Streams
from tests.decoding import naive


def enumerated_draws(weights: list[float], count: int) -> dict[tuple[int, ...], float]:
    laws, path = {}, Decisions()
    while path:
        drawn = tuple(ToldStream(path).draw_distinct(torch.tensor(weights, dtype=torch.float64).log(), count))
        laws[drawn] = laws.get(drawn, 0.0) + path.probability()
        path = path.next()
    return laws


@pytest.mark.parametrize("count", [1, 2, 3, 4, 9])
@pytest.mark.parametrize("weights", [[0.5, 0.3, 0.2], [3.0, 0.0, 1.0, 2.0], [1.0], [1e-9, 1.0, 1e-9, 0.0]])
def test_draws_without_replacement_have_the_exact_law(weights, count):
    expected = naive.distinct_draws(weights, count)
    found = enumerated_draws(weights, count)
    assert found.keys() == expected.keys()
    assert found == pytest.approx(expected, abs=1e-12)


def test_seeded_draws_have_the_law_they_are_from():
    stream, weights, draws = SeededStream("law"), [0.05, 0.25, 0.0, 0.6, 0.1], 4000
    found = [tuple(stream.draw_distinct(torch.tensor(weights).log(), 2)) for _ in range(draws)]
    for order, probability in naive.distinct_draws(weights, 2).items():
        deviation = abs(found.count(order) / draws - probability)
        assert deviation < 4.5 * (probability * (1 - probability) / draws) ** 0.5
    assert all(2 not in order for order in found)


def test_a_draw_at_the_very_end_of_the_mass_has_weight():
    class AlmostOne(SeededStream):
        def uniform(self, split: float) -> float:
            return float(np.nextafter(1.0, 0.0))

    assert AlmostOne("x").pick(np.array([0.1, 0.7, 0.2, 0.0, 0.0])) == 2


def test_a_draw_at_zero_has_weight():
    class Zero(SeededStream):
        def uniform(self, split: float) -> float:
            return 0.0

    assert Zero("x").pick(np.array([0.0, 0.0, 0.7, 0.3])) == 2


def uniforms(stream, count=5):
    return [stream.uniform(0.5) for _ in range(count)]


def test_streams_differ_by_seed_lane_and_purpose_and_by_nothing_else():
    seen = []
    for seed, lane in itertools.product((0, 1, 2**53 - 1), ("mtad", "speculative")):
        streams = Streams.seeded(seed, lane)
        seen += [tuple(uniforms(stream)) for stream in (streams.draft, streams.acceptance, streams.target)]
    assert len(set(seen)) == len(seen)
    again = Streams.seeded(0, "mtad")
    assert (tuple(uniforms(again.draft)), tuple(uniforms(again.acceptance))) == (seen[0], seen[1])


def test_using_one_stream_leaves_the_others_and_the_global_state_alone():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    used, fresh = Streams.seeded(3, "lane"), Streams.seeded(3, "lane")
    uniforms(used.draft, 100)
    uniforms(used.target, 7)
    assert uniforms(used.acceptance) == uniforms(fresh.acceptance)
    assert torch.equal(torch.rand(3), expected)


def test_uniforms_lie_in_the_half_open_interval():
    values = uniforms(SeededStream("range"), 2000)
    assert all(0 <= value < 1 for value in values)
    assert 0.45 < sum(values) / len(values) < 0.55
