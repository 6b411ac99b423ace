"""Entitlements of flows."""

import random
from collections.abc import Iterator
from typing import Any

import pytest

from apportion import fairness
from apportion.fairness import Flow


def test_jain_is_one_for_equals_and_one_nth_for_one() -> None:
    assert fairness.jain([2, 2, 2]) == 1
    assert fairness.jain(x for x in (0, 5, 0, 0)) == pytest.approx(0.25)


def test_one_link_is_divided_by_weights_above_guarantees() -> None:
    assert fairness.max_min(10, [None, None, 1]) == [4.5, 4.5, 1]
    assert fairness.max_min([10], [Flow([0], weight=3), [0]]) == [7.5, 2.5]
    assert fairness.max_min({"x": 10}, [Flow(["x"], guarantee=6), ["x"]]) == [8, 2]


class Scalar:
    """An integer like numpy's."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __index__(self) -> int:
        return self.number


class Array(Scalar):
    """An array has the methods of its only number."""

    def __iter__(self) -> Iterator[int]:
        return iter([self.number])


def test_numbers_may_be_those_of_numpy() -> None:
    one: Any = Scalar(1)
    ten: Any = Scalar(10)
    assert fairness.max_min(ten, [None, None, one]) == [4.5, 4.5, 1]
    assert fairness.max_min(float(10), [None, None, one]) == [4.5, 4.5, 1]
    array: Any = Array(10)
    assert fairness.max_min(array, [[0], [0]]) == [5, 5]
    with pytest.raises(ValueError, match="write its path"):
        fairness.max_min(array, [one])


def test_no_flow_can_have_more_without_one_that_has_no_more() -> None:
    draw = random.Random(5)
    for _ in range(50):
        links = {f"l{n}": draw.uniform(1, 10) for n in range(4)}
        flows = [Flow(draw.sample(sorted(links), draw.randint(1, 3)), weight=draw.uniform(0.5, 4)) for _ in range(7)]
        shares = fairness.max_min(links, flows)
        load = {link: sum(s for s, f in zip(shares, flows) if link in f.path) for link in links}
        for share, flow in zip(shares, flows):
            full = [link for link in flow.path if load[link] > links[link] - 1e-6]
            # On a saturated link of its path, no flow has a higher rate per weight.
            level = share / flow.weight
            assert any(
                all(s / f.weight <= level + 1e-6 for s, f in zip(shares, flows) if link in f.path) for link in full
            )


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(ValueError, match="'y'"):
        fairness.max_min({"x": 1}, [["y"]])
    with pytest.raises(ValueError, match="demand"):
        fairness.max_min({"x": 1}, [2.0])
    with pytest.raises(ValueError):
        fairness.max_min(1, [Flow([0], guarantee=2)])
    with pytest.raises(ValueError):
        fairness.max_min(-1, [None])
