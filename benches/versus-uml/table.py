"""Compares the flows of the simulator, the lab and Linux in one table."""

import json
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "validation"))
import common  # noqa: E402
import uml  # noqa: E402

METRICS = ["Mb/s", "median ms", "p95 ms", "dropped %"]
# Tolerances of docs/parity.md: part of an even share, part of the delay in Linux or ms, percentage points; and the standard
# deviations of the simulator that count as chance.
SHARE, DELAY, DELAY_MS, DROPS, SIGMAS = 0.15, 0.25, 3.0, 3.0, 2.0
# Maximum drift of the clock over the minutes of the runs.
CLOCK_MS = 100.0


def metrics(row):
    """The metrics of a row of flows.csv or of a flow in linux.json."""
    dropped = sum(float(value) for name, value in row.items() if name.startswith("drop"))
    percent = 100 * dropped / max(float(row["sent_packets"]), 1)
    return [float(row[name] or 0) for name in ["throughput_mbps", "delay_p50_ms", "delay_p95_ms"]] + [percent]


def results(folder):
    """By point of the sweep, in its order: by flow, the metrics of each run."""
    points = {}
    for row in common.read_csv(folder / "latest" / "flows.csv"):
        points.setdefault(row["point"], {}).setdefault(row["flow"], []).append(metrics(row))
    return list(points.values())


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


def sides(folder, chosen, worlds):
    """By row: the flows in each world of ours."""
    by_row = {}
    for name in dict.fromkeys(row.workload for row in chosen):
        of_workload = [row.name for row in chosen if row.workload == name]
        points = [results(folder / name / world) for world in worlds]
        if any(len(it) != len(of_workload) for it in points):
            sys.exit(f"versus-uml: {folder / name} has not as many points as there are disciplines")
        by_row |= zip(of_workload, zip(*points))
    return by_row


def show(folder, chosen, has_lab):
    """Prints the table. 1 if there is a difference, or if Linux's numbers are not valid."""
    worlds = ["sim", "lab"] if has_lab else ["sim"]
    ours = sides(folder, chosen, worlds)
    linux = json.loads((folder / "linux.json").read_text())
    theirs_by_row = {run["name"]: run for run in linux["runs"]}
    rows, marks, faults = [], "", []
    for row in chosen:
        run = theirs_by_row[row.name]
        flows = {name: metrics(flow) for name, flow in run["flows"].items()}
        even = statistics.fmean(flow[0] for flow in flows.values())
        for name, theirs in flows.items():
            runs = [world[name] for world in ours[row.name]]
            deviations = [statistics.stdev(values) for values in zip(*runs[0])]
            both = [compared(theirs, it, deviations, even, row.comparable) for it in runs]
            marks += "".join(cell[-1] for side in both for cell in side)
            cells = zip(*both, [f"{value:.4g}" for value in theirs])
            rows.append([row.name, name, *(cell for metric in cells for cell in metric)])
        if run["late_ms"] > uml.LATE_MS:
            faults.append(f"{row.name}: 1 % of packets left {run['late_ms']:.1f} ms late or more")
        if run["dropped"] != run["dropped_by_tc"]:
            faults.append(f"{row.name}: {run['dropped']} drops were seen, tc counts {run['dropped_by_tc']}")
    # The modification time is that of the machine, the content that of user-mode Linux.
    clock_ms = 1e3 * ((folder / "linux.json").stat().st_mtime - linux["ended"])
    if abs(clock_ms) > CLOCK_MS:
        faults.append(f"the clock was {clock_ms:.0f} ms off in the end")
    heads = [name for metric in METRICS for name in [f"{metric}: sim", *worlds[1:], "linux"]]
    common.table(["", "flow", *heads], rows)
    late = ", ".join(f"{run['late_ms']:.2f}" for run in linux["runs"])
    print(f"Linux {linux['kernel']}: 99 % of packets left within {late} ms of their time; clock {clock_ms:+.0f} ms")
    beyond, scattered = marks.count("!"), marks.count("~")
    within = len(marks) - beyond - scattered
    print(f"differences from Linux: {within} within tolerance, {beyond} beyond it (!), {scattered} not comparable (~)")
    for fault in faults:
        print(f"NOT VALID: {fault}")
    return int(bool(beyond or faults))
