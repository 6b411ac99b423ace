"""Figures of the catalogue: what disciplines and congestion controls do, each in a run of the program that takes less than a second."""

import csv
import json
import re
import shlex
import subprocess
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from statistics import mean

QUEUE = "topology.bottleneck.queue"
TCP = "defaults.flow.tcp"
DISCIPLINES = "docs/site/disciplines.toml"
CONTROLS = "docs/site/controls.toml"
GUARANTEES = "scenarios/league/guarantees.toml"
# Kinds of `apportion plot`, and what they show.
SHOWS = {"throughput": "Throughput of the flows", "queue": "Packets in the queue", "window": "Congestion windows"}


@dataclass(frozen=True)
class Shown:
    """What is run for a figure: a scenario with settings, and of a sweep the point with this value of its queue."""

    scenario: str
    settings: tuple[str, ...] = ()
    point: str = ""


TICKETS = Shown("scenarios/tickets.toml", point="tred")
MARKED = Shown(GUARANTEES, (f'{QUEUE}={{ kind = "fifo", drop = "rio" }}',))
# What needs other flows, labels or neighbours than those of `DISCIPLINES` and `CONTROLS`.
OWN = {
    "hcsfq": Shown("scenarios/customers.toml", point="hcsfq"),
    "tred": TICKETS,
    "tickets": TICKETS,
    "sffc": Shown("scenarios/neighbours.toml", point="sffc"),
    "nbq": Shown("scenarios/neighbours.toml", point="nbq"),
    "ramp": Shown("scenarios/rate-matching.toml", point="ramp"),
    "prio": Shown("scenarios/classes.toml", point="prio"),
    "htb": Shown("scenarios/classes.toml", point="htb"),
    "hfsc": Shown("scenarios/classes.toml", point="hfsc"),
    "isolate": Shown("scenarios/hosts.toml", (f'{QUEUE}={{ kind = "drr", isolate = "both" }}',)),
    "dualpi2": Shown(CONTROLS, (f'{QUEUE}="dualpi2"', 'flow.first.tcp="prague"')),
    "mcsfq": Shown(GUARANTEES, point="mcsfq"),
    "rio": MARKED,
    "tsw2cm": MARKED,
    "token_bucket": Shown(DISCIPLINES, (f'{QUEUE}={{ kind = "fifo", shaper = "token_bucket", rate = "8Mbit" }}',)),
    "dctcp": Shown(
        CONTROLS,
        (f'{TCP}="dctcp"', f'{QUEUE}={{ kind = "fifo", drop = "red", ecn = true, min_th = "15p", max_th = "16p", w_q = 1 }}'),
    ),
    "prague": Shown(CONTROLS, (f'{TCP}="prague"', f'{QUEUE}="dualpi2"')),
    "ledbat": Shown(CONTROLS, ('flow.first.tcp="ledbat"', f'{QUEUE}={{ kind = "fifo", limit = "200ms" }}')),
    "quic": Shown(CONTROLS, ('defaults.flow.quic="cubic"',)),
}
# What the first page shows.
HOME = Shown(
    "scenarios/quickstart.toml", (f'{QUEUE}=[{{ kind = "fifo", limit = "100p" }}, {{ kind = "drr", limit = "100p" }}]',)
)
# Why there is no figure.
WITHOUT = {
    "tsw3cm": "`rio` treats yellow packets as red ones, so a run looks like that of `tsw2cm`.",
    "currency": "It needs a path over several links: `apportion reproduce pps-extensions/exchange` measures it.",
}


def shown(name: str, role: str, use: str) -> Shown | None:
    """What to run for this entry of the catalogue, by what its page says about its role and use."""
    value = re.search(r'= (\{.*?\}|".*?")', use)
    if name in OWN:
        return OWN[name]
    if name in WITHOUT or not value:
        return None
    if use.startswith("queue"):
        return Shown(DISCIPLINES, (f"{QUEUE}={value[1]}",))
    return Shown(CONTROLS, (f"{TCP}={value[1]}",)) if role.startswith("TCP") else None


class Figures:
    """Runs scenarios, each once, and writes their figures into a folder of pages."""

    def __init__(self, root: Path, program: Path, runs: Path, pages: Path) -> None:
        self.root, self.program, self.runs, self.pages = root, program, runs, pages
        self.made: dict[tuple[str, tuple[str, ...]], Path] = {}

    def run(self, what: Shown) -> Path:
        """The folder of the results."""
        key = (what.scenario, what.settings)
        if key not in self.made:
            out = self.runs / str(len(self.made))
            self.call("run", self.root / what.scenario, *settings(what), "--out", out, "--no-cache", "--quiet")
            self.made[key] = out / "1"
        return self.made[key]

    def call(self, *arguments: str | Path) -> None:
        subprocess.run([self.program, *arguments], check=True, stdout=subprocess.DEVNULL)

    def home(self) -> str:
        """The picture of the first page: that of the README is too small for the column of a page."""
        self.call("plot", self.run(HOME), "--kind", "shares", "--out", self.pages / "quickstart.svg")
        text = "Throughput of ten TCP flows and one unresponsive UDP flow behind FIFO and behind DRR"
        return f"![{text}]({self.pages.name}/quickstart.svg){{ .drawn }}"

    def section(self, name: str, what: Shown, link: str) -> list[str]:
        """The part of a page that shows a run, whose scenario is at `link`."""
        folder = self.run(what)
        run = json.loads((folder / "run.json").read_text())
        point = next(point for point in run["points"] if re.search(rf"={what.point}\b|^$", point["label"]))
        kinds = ["window", "throughput", "queue"] if what.scenario == CONTROLS else ["throughput", "queue"]
        images = []
        for kind in kinds:
            file = f"{name}-{kind}.svg"
            self.call("plot", folder, "--kind", kind, "--point", point["label"], "--out", self.pages / file)
            images.append(f"![{SHOWS[kind]} over time; the tables have its means]({file}){{ .drawn }}")
        begin, end = point["measure_from_s"], point["measure_from_s"] + point["measured_s"]
        command = shlex.join(["apportion", "run", what.scenario, *settings(what)])
        return [
            "## In a run",
            f"[{run['title']}]({link}), seed {run['seeds'][0]}. The tables are of the time from {begin:g} to {end:g} s.",
            " ".join(images),
            *numbers(folder, point["label"]),
            f"```sh\n{command}\n```",
        ]


def mean_of(cells: list[str]) -> str:
    """A dash where one is missing."""
    return f"{mean(map(float, cells)):.2f}" if all(cells) else "–"


def settings(what: Shown) -> list[str]:
    return [word for setting in what.settings for word in ("--set", setting)]


def numbers(folder: Path, point: str) -> list[str]:
    """What flows and watched links had in a run, as tables."""

    def rows(table: str) -> list[dict[str, str]]:
        with (folder / f"{table}.csv").open() as file:
            return [row for row in csv.DictReader(file) if row["point"] == point]

    flows = ["| flows | throughput of each, Mb/s | entitlement, Mb/s |", "|---|---|---|"]
    for _, members in groupby(rows("flows"), lambda row: (row["group"], row["entitlement_mbps"])):
        of = list(members)
        name = f"{of[0]['group']}, {len(of)} flows" if len(of) > 1 else of[0]["flow"]
        cells = (mean_of([row[column] for row in of]) for column in ("throughput_mbps", "entitlement_mbps"))
        flows.append(f"| {name} | {' | '.join(cells)} |")
    links = ["| link | used | sojourn time, median | 95th percentile |", "|---|---|---|---|"]
    for row in rows("links"):
        if row["watched"] == "true":
            delays = " | ".join(f"{float(row[f'queue_delay_{of}_ms'] or 0):.1f} ms" for of in ("p50", "p95"))
            links.append(f"| {row['link']} | {float(row['utilisation']):.0%} | {delays} |")
    return ["\n".join(flows), "\n".join(links)]
