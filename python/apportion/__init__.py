"""Divide a link's bandwidth among flows, and measure the share of each.

A scenario describes a network with its flows, a run simulates it, and results are tables:

>>> import apportion as ap
>>> s = ap.dumbbell(2, rate="5Mbit", stop="3s", measure_from="1s")
>>> r = s.set({"queue": ["fifo", "drr"]}).run(seeds=2)
>>> r.flows.units["throughput_mbps"], len(r.flows)
('Mb/s', 8)

The same scenario with the same seed gives the same results, bit for bit, with any number of threads.
"""

from . import fairness
from ._catalogue import Entry, disciplines, examples, experiments, explain, names
from ._native import VERSION as __version__
from ._native import RunError, ScenarioError
from ._results import IncompleteWarning, Results
from ._scenario import Point, Scenario, dumbbell, example
from ._table import Column, Table

__all__ = [
    "Column",
    "Entry",
    "IncompleteWarning",
    "Point",
    "Results",
    "RunError",
    "Scenario",
    "ScenarioError",
    "Table",
    "__version__",
    "disciplines",
    "dumbbell",
    "example",
    "examples",
    "experiments",
    "explain",
    "fairness",
    "names",
]
