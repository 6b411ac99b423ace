"""Divide a link's bandwidth among flows, and measure the share of each.

A scenario describes a network with its flows, a run simulates it, and results are tables. The same scenario with the same seed
gives the same results, bit for bit, with any number of threads.

Examples
--------
>>> import apportion as ap
>>> s = ap.dumbbell(2, rate="5Mbit", stop="12s", measure_from="2s")
>>> r = s.set({"queue": ["fifo", "drr"]}).run(seeds=2)
>>> r.flows.units["throughput_mbps"], len(r.flows)
('Mb/s', 8)
"""

from . import fairness, laws, testing
from ._catalogue import Entry, disciplines, examples, experiments, explain, names
from ._disciplines import register
from ._events import Dropped, FlowSample, LinkSample, Marked, Sampled
from ._league import League, Pairs, league, pairs, services, situations
from ._native import VERSION as __version__
from ._native import RunError, ScenarioError
from ._results import IncompleteWarning, Point, Results, ScenarioWarning, load
from ._scenario import Scenario, dumbbell, example
from ._shares import Share, Shares
from ._sweep import Sweep, sweep
from ._table import Column, Table

__all__ = [
    "Column",
    "Dropped",
    "Entry",
    "FlowSample",
    "IncompleteWarning",
    "League",
    "LinkSample",
    "Marked",
    "Pairs",
    "Point",
    "Results",
    "RunError",
    "Sampled",
    "Scenario",
    "ScenarioError",
    "ScenarioWarning",
    "Share",
    "Shares",
    "Sweep",
    "Table",
    "__version__",
    "disciplines",
    "dumbbell",
    "example",
    "examples",
    "experiments",
    "explain",
    "fairness",
    "laws",
    "league",
    "load",
    "names",
    "pairs",
    "register",
    "services",
    "situations",
    "sweep",
    "testing",
]
