#!/usr/bin/env python3
"""Compares the flows of the simulator, the lab and Linux in one table: table.py FOLDER, which `run` has filled."""

import json
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "validation"))
import common  # noqa: E402

METRICS = ["Mb/s", "median ms", "p95 ms", "dropped %"]
# Tolerances of docs/parity.md: part of an even share, part of the delay in Linux or ms, percentage points; and the standard
# deviations of the simulator that count as chance.
SHARE, DELAY, DELAY_MS, DROPS, SIGMAS = 0.15, 0.25, 3.0, 3.0, 2.0
# Maximum lateness of 99 of 100 packets, as in the lab; maximum drift of the clock over the minutes of the runs.
LATE_MS, CLOCK_MS = 2.0, 100.0


def metrics(row):
    """The metrics of a row of flows.csv or of a flow in linux.json."""
    dropped = sum(float(value) for name, value in row.items() if name.startswith("drop"))
    percent = 100 * dropped / max(float(row["sent_packets"]), 1)
    return [float(row[name] or 0) for name in ["throughput_mbps", "delay_p50_ms", "delay_p95_ms"]] + [percent]


def results(folder):
    """By point of the sweep: by flow, the metrics of each run."""
    points = {}
    for row in common.read_csv(folder / "latest" / "flows.csv"):
        point = points.setdefault(row["point"].removeprefix("queue="), {})
        point.setdefault(row["flow"], []).append(metrics(row))
    return points


def compared(linux, runs, deviations, even, comparable):
    """The means of `runs` as text: `!` marks one beyond its tolerance, `~` one that is not comparable.

    Only the first `comparable` metrics measure the same thing in both.
    """
    tolerances = [SHARE * even, max(DELAY * linux[1], DELAY_MS), max(DELAY * linux[2], DELAY_MS), DROPS]
    cells = []
    for at, (theirs, tolerance, deviation) in enumerate(zip(linux, tolerances, deviations)):
        mean = statistics.fmean(run[at] for run in runs)
        # Linux ran once: its value is a single draw.
        chance = SIGMAS * (1 + 1 / len(runs)) ** 0.5 * deviation
        is_beyond = at < comparable and abs(mean - theirs) > tolerance + chance
        mark = "!" if is_beyond else "~" if at >= comparable or chance > tolerance else ""
        cells.append(f"{mean:.4g}{mark}")
    return cells


def main():
    folder = Path(sys.argv[1])
    sim, lab = results(folder / "sim"), results(folder / "lab")
    linux = json.loads((folder / "linux.json").read_text())
    rows, marks, faults = [], "", []
    for run in linux["runs"]:
        flows = [metrics(flow) for flow in run["flows"]]
        even = statistics.fmean(flow[0] for flow in flows)
        # With a queue per flow delays and drops differ from those of a shared queue; only throughput is comparable.
        comparable = 1 if run["discipline"] == "drr" else len(METRICS)
        for name, theirs in zip(sim[run["queue"]], flows):
            simulated = sim[run["queue"]][name]
            deviations = [statistics.stdev(values) for values in zip(*simulated)]
            both = [simulated, lab[run["queue"]][name]]
            sides = [compared(theirs, runs, deviations, even, comparable) for runs in both]
            marks += "".join(cell[-1] for side in sides for cell in side)
            cells = zip(*sides, [f"{value:.4g}" for value in theirs])
            rows.append([run["discipline"].split()[0], name, *(cell for metric in cells for cell in metric)])
        if run["late_ms"] > LATE_MS:
            faults.append(f"{run['discipline']}: 1 % of packets left {run['late_ms']:.1f} ms late or more")
        if run["dropped"] != run["dropped_by_tc"]:
            faults.append(f"{run['discipline']}: {run['dropped']} drops were seen, tc counts {run['dropped_by_tc']}")
    # The modification time is that of the machine, the content that of user-mode Linux.
    clock_ms = 1e3 * ((folder / "linux.json").stat().st_mtime - linux["ended"])
    if abs(clock_ms) > CLOCK_MS:
        faults.append(f"the clock was {clock_ms:.0f} ms off in the end")
    common.table(["", "flow", *(name for metric in METRICS for name in [f"{metric}: sim", "lab", "linux"])], rows)
    late = ", ".join(f"{run['late_ms']:.2f}" for run in linux["runs"])
    print(f"Linux {linux['kernel']}: 99 % of packets left within {late} ms of their time; clock {clock_ms:+.0f} ms")
    beyond, scattered = marks.count("!"), marks.count("~")
    within = len(marks) - beyond - scattered
    print(f"differences from Linux: {within} within tolerance, {beyond} beyond it (!), {scattered} not comparable (~)")
    for fault in faults:
        print(f"NOT VALID: {fault}")
    sys.exit(1 if beyond or faults else 0)


main()
