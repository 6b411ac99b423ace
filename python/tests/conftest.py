"""Fixtures shared by tests."""

import signal

import pytest

import apportion as ap

# A shell starts background programs with interrupts ignored, and Python keeps that.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def small() -> ap.Scenario:
    """Two TCP flows under two disciplines: a fraction of a second."""
    return ap.dumbbell(2, rate="3Mbit", queue=["fifo", "drr"], stop="3s", measure_from="1s")


@pytest.fixture(scope="session")
def results(small: ap.Scenario) -> ap.Results:
    """Results of the scenario with two seeds."""
    return small.run(seeds=2, progress=False)
