#!/usr/bin/env python3
"""Flows of a Linux kernel over a bottleneck, for each setting of a file, as the first process of that kernel.

All flows come from one host and go to another; validation/uml.py has the hosts, the bottleneck and what is seen of it.
"""

import json
import os
import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import uml  # noqa: E402
from uml import PACKET  # noqa: E402

FIRST_PORT = 40000
MODULES = ["sch_red", "sch_fq_codel", "tcp_bbr", "tcp_dctcp", "tcp_vegas"]


def discipline(setting):
    """The setting's queue in the words of tc."""
    buffer = setting["packets"]
    if setting["queue"] == "fifo":
        return f"pfifo limit {buffer}"
    if setting["queue"] == "fq_codel":
        # As many queues as there can be, so that no two flows meet in one.
        return "fq_codel limit 10000 flows 65535 quantum 1514 target 5ms interval 100ms noecn"
    # A burst as long as the threshold makes tc choose 1/2, the largest weight that it knows.
    k = setting["threshold"]
    return (
        f"red limit {buffer * PACKET} min {(k - 1) * PACKET} max {k * PACKET} avpkt {PACKET} burst {k + 1}"
        f" probability 1.0 bandwidth {setting['rate']}mbit ecn"
    )


def experiment(setting, draw, measure_from, stop):
    rate, control = setting["rate"] * 1e6, setting["control"]
    # A window of 4 MiB.
    settings = uml.window(4096) | {"tcp_ecn": "1" if control == "dctcp" else "0"}
    receiver = uml.Host("out", "10.2.0", [uml.sink(control)], settings)
    starts = [draw.random() for _ in range(setting["flows"])]
    works = [uml.bulk(control, FIRST_PORT + i, "10.2.0.2", start) for i, start in enumerate(starts)]
    sender = uml.Host("in", "10.1.0", works, settings)
    # The bottleneck's transmission is part of the round trip, but HTB lets a packet go when it begins.
    back = setting["rtt"] * 1e3 + 8e6 * PACKET / rate
    uml.run(f"tc qdisc add dev in root netem limit 100000 delay {back:.0f}us")
    uml.bottleneck(rate, discipline(setting))
    watch = uml.Watch()
    zero = time.time() + 0.5
    for host in (receiver, sender):
        host.begin(zero)
    watch.listen(zero + stop)
    sender.stop()
    watch.listen(time.time() + 0.5)
    watch.end()
    begin, end = zero + measure_from, zero + stop - 1
    left = [it for it in watch.passed if begin <= it.at < end]
    lost = sum(begin <= it.came < end for it in watch.lost)
    # Data only: acknowledgements of nothing and handshakes are short.
    flows = [sum(8 * it.size for it in left if it.port == FIRST_PORT + i) for i in range(setting["flows"])]
    result = {
        "flows_mbps": [bits / (end - begin) / 1e6 for bits in flows],
        "utilisation": sum(flows) / (end - begin) / rate,
        "wait_p50_ms": 1e3 * uml.quantile([it.at - it.came for it in left], 0.5),
        "drops": lost / max(1, lost + len(left)),
        "marks": sum(it.marked for it in left) / max(1, len(left)),
        "late_ms": 1e3 * watch.lateness(rate, begin, end),
    }
    for host in (sender, receiver):
        host.end()
    return result


def main(modules):
    measure_from, stop, seed = sys.argv[3:6]
    uml.load(modules, MODULES)
    draw, results = random.Random(int(seed)), []
    for setting in json.loads(Path("/mnt/settings.json").read_text()):
        results.append(experiment(setting, draw, float(measure_from), float(stop)))
        Path("/mnt/linux.json").write_text(json.dumps({"kernel": os.uname().release, "runs": results}, indent=1))


uml.first_process(main)
