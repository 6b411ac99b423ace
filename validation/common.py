"""What the checks share: running ns-2 and apportion, means over seeds, tables, and claims that hold or do not.

A check is a program `validation/NAME/check [--seeds N] [--ns2-only]`. It prints a table of both simulators side by
side, then one line per claim, and exits 0 if all claims hold, 1 if one does not, 2 if a program is missing.
"""

import argparse
import csv
import functools
import math
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent


def stop(message):
    print(message, file=sys.stderr)
    sys.exit(2)


# ---------------------------------------------------------------- the two simulators


def answer(program, question):
    return subprocess.run([program], input=question, capture_output=True, text=True).stdout


@functools.cache
def ns2_program():
    """ns-2, or one clear message."""
    path = shutil.which("ns")
    if not path or "2.35" not in answer(path, "puts [ns-version]\n"):
        stop("ns-2 2.35 is not here: it is the program `ns` of the Debian package ns2 (apt-get install ns2)")
    return path


def ns2_lines(**options):
    """The lines, split into words, of one run of dumbbell.tcl."""
    words = [str(word) for pair in options.items() for word in pair]
    command = [ns2_program(), str(HERE / "dumbbell.tcl"), *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        yield from (line.split() for line in process.stdout)
    if process.returncode != 0:
        stop(f"failed with {process.returncode}: {' '.join(command)}")


def ns2_flows(seeds, **options):
    """Throughput in Mb/s, one list of flows per seed."""
    return [
        [float(words[2]) for words in ns2_lines(seed=seed, **options) if words[0] == "flow"]
        for seed in range(1, seeds + 1)
    ]


def apportion_program(name="apportion"):
    """A program of the release build of this tree."""
    path = ROOT / "target/dist" / name
    if not Path(path).exists():
        stop(f"{path} is not there: cargo build --profile dist, or --ns2-only for the other half")
    return str(path)


def apportion(scenario, seeds, exported=(), **settings):
    """Runs a scenario; returns its tables by name, each a list of rows (dicts): `flows`, `links`, and those to be exported."""
    sets = [word for key, value in settings.items() for word in ("--set", f"{key.replace('__', '.')}={value}")]
    with tempfile.TemporaryDirectory() as out:
        command = [apportion_program(), "run", str(scenario), "--seeds", str(seeds), "--out", out, *sets]
        exports = [[command[0], "export", out, table, "--out", f"{out}/{table}.csv"] for table in exported]
        for command in [command, *exports]:
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode != 0:
                stop(f"failed with {done.returncode}: {' '.join(command)}\n{done.stderr}")
        tables = {table.stem: read_csv(table) for table in Path(out).rglob("*.csv")}
        if not tables:
            stop(f"wrote no tables: {' '.join(command)}")
        return tables


def read_csv(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def by_seed(rows, column):
    """`column` of flow rows: one list of flows per seed, flows in the order of their number (`reno.2`, `reno.10`)."""
    seeds = {}
    for row in rows:
        seeds.setdefault(int(row["seed"]), []).append((natural(row["flow"]), float(row[column])))
    return [[value for _, value in sorted(flows)] for _, flows in sorted(seeds.items())]


def by_point(rows):
    """Rows of a sweep, one list per point in the order of the sweep."""
    points = {}
    for row in rows:
        points.setdefault(row["point"], []).append(row)
    return list(points.values())


def natural(name):
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


# ---------------------------------------------------------------- statistics


def mean_by_flow(runs):
    return [statistics.fmean(flow) for flow in zip(*runs)]


def sigma(values):
    """Population standard deviation: the form that reproduces the published tables."""
    return statistics.pstdev(values)


def rmse(a, b):
    return math.sqrt(statistics.fmean((x - y) ** 2 for x, y in zip(a, b, strict=True)))


def jain(values):
    return sum(values) ** 2 / (len(values) * sum(x * x for x in values))


# ---------------------------------------------------------------- printing


def table(header, rows):
    cells = [[str(cell) for cell in row] for row in [header, *rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    for row in cells:
        first = row[0].ljust(widths[0])
        print("  ".join([first, *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))]).rstrip())


class Claims:
    """Claims, printed as they are made; `exit()` ends the check with the verdict."""

    def __init__(self):
        self.failed = 0

    def between(self, name, value, low, high):
        holds = low <= value <= high
        self.failed += not holds
        print(f"{'holds' if holds else 'FAILS'}  {name}: {value:.6g}, claimed {low:.6g} to {high:.6g}")

    def near(self, name, value, target, within):
        self.between(name, value, target - within, target + within)

    def at_most(self, name, value, high):
        self.between(name, value, 0.0, high)

    def exit(self):
        sys.exit(1 if self.failed else 0)


def arguments(description, seeds=20):
    parser = argparse.ArgumentParser(description=description.split("\n\n")[0])
    parser.add_argument("--seeds", type=int, default=seeds, help=f"replications (default {seeds})")
    parser.add_argument("--ns2-only", action="store_true", help="without our simulator: only the reference")
    return parser.parse_args()
