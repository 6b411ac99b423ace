#!/usr/bin/env python3
"""The workloads of disciplines.py over the disciplines of a Linux kernel, as the first process of that.

Each sending host l1, l2, ... has a peer of its own: one of the addresses of the receiver. validation/uml.py has the hosts,
the bottleneck and what is seen of it.
"""

import json
import os
import random
import socket
import sys
import time
from pathlib import Path

from disciplines import Setting, rows, workload

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "validation"))
import uml  # noqa: E402
from uml import PACKET, PORT  # noqa: E402

# The headers of IP and UDP. Flow i sends from port FIRST_PORT + i, by which it is known.
HEADERS, FIRST_PORT = 28, 6000
# A window of 512 kB: to grow to more takes seconds.
SETTINGS = uml.window(512) | {"tcp_timestamps": "0"}


def source(number, flow, start):
    """What sends flow `number` of a workload: CUBIC without end, or datagrams at a constant rate."""
    here, peer = FIRST_PORT + number, f"10.2.0.{1 + flow.host}"

    def cbr(zero):
        with socket.socket(type=socket.SOCK_DGRAM) as udp:
            udp.bind(("", here))
            udp.connect((peer, PORT))
            due = zero
            while True:
                uml.sleep_until(due)
                udp.send(bytes(PACKET - HEADERS))
                due += 8 * PACKET / (1e6 * flow.rate)

    return cbr if flow.rate else uml.bulk("cubic", here, peer, start)


def datagrams(zero):
    """Takes them, so that no error is sent; they may lie."""
    with socket.socket(type=socket.SOCK_DGRAM) as udp:
        udp.bind(("", PORT))
        while True:
            time.sleep(3600)


def bottleneck(setting, row):
    uml.bottleneck(1e6 * setting.rate, row.tc)
    kind = row.tc.split()[0]
    for it in row.classes:
        # The bands of prio are there.
        if it.arguments:
            uml.run(f"tc class add dev out parent 2:{it.parent or ''} classid 2:{it.number} {kind} {it.arguments}")
        if it.hosts:
            uml.run(f"tc qdisc add dev out parent 2:{it.number} {it.leaf}")
        for host in it.hosts:
            uml.run(f"tc filter add dev out parent 2: protocol ip u32 match ip src 10.1.{host}.2 flowid 2:{it.number}")


def dropped():
    """What tc says was dropped."""
    qdiscs = json.loads(uml.run("tc -s -j qdisc show dev out"))
    return next(qdisc["drops"] for qdisc in qdiscs if qdisc.get("root"))


def of_flow(watch, i, one_way, begin, end):
    """What flow `i`, whose packets take `one_way` without queues, got between two moments."""
    passed = [it for it in watch.passed if it.port == FIRST_PORT + i]
    lost = sum(it.port == FIRST_PORT + i and begin <= it.came < end for it in watch.lost)
    left = [it for it in passed if begin <= it.at < end]
    delays = [one_way + it.at - it.came for it in left]
    return {
        "throughput_mbps": sum(8 * it.size for it in left) / (end - begin) / 1e6,
        "delay_p50_ms": 1e3 * uml.quantile(delays, 0.5),
        "delay_p95_ms": 1e3 * uml.quantile(delays, 0.95),
        "sent_packets": sum(begin <= it.came < end for it in passed) + lost,
        "dropped_packets": lost,
    }


def experiment(setting, row, measure_from, stop):
    flows, _ = workload(row.workload, setting)
    hosts = sorted({flow.host for flow in flows})
    receiver = uml.Host("out", "10.2.0", [uml.sink(), datagrams], SETTINGS, [1 + host for host in hosts])
    draw = random.Random(3)
    works = {host: [] for host in hosts}
    for number, flow in enumerate(flows):
        works[flow.host].append(source(number, flow, draw.random()))
    senders = [uml.Host(f"p{host}", f"10.1.{host}", works[host], SETTINGS) for host in hosts]
    for host in hosts:
        # A round trip without queues; the 40 bytes of an acknowledgement take 0.04 ms more.
        delay = setting.one_way(host) + (10 + 2 * host) / 1e3
        uml.run(f"tc qdisc add dev p{host} root netem limit 10000 delay {1e6 * delay:.0f}us")
    bottleneck(setting, row)
    watch = uml.Watch()
    zero = time.time() + 2
    for host in [receiver, *senders]:
        host.begin(zero)
    # What came before the end leaves within a second, and what sockets still hold when senders stop, within two more: `fq` holds
    # 100 packets of a flow back to its `maxrate`.
    watch.listen(zero + stop + 1)
    for host in senders:
        host.stop()
    watch.listen(time.time() + 2)
    watch.end()
    begin, end = zero + measure_from, zero + stop
    result = {
        "flows": {
            flow.name: of_flow(watch, i, setting.one_way(flow.host), begin, end) for i, flow in enumerate(flows)
        },
        "late_ms": 1e3 * watch.lateness(1e6 * setting.rate * row.shaped, begin, end),
        "dropped": len(watch.lost),
        "dropped_by_tc": dropped(),
        "tc": uml.run("tc -s -d qdisc show dev out"),
    }
    for host in [*senders, receiver]:
        host.end()
    return result


def main(modules):
    wanted = json.loads(Path("/mnt/wanted.json").read_text())
    setting = Setting(**wanted["setting"])
    chosen = [row for row in rows(setting) if row.name in wanted["names"]]
    kinds = {tc.split()[0] for row in chosen for tc in [row.tc, *(it.leaf for it in row.classes)]}
    # HTB is loaded, and FIFO is not a module.
    uml.load(modules, ["cls_u32", *sorted(f"sch_{kind}" for kind in kinds - {"htb"})])
    results = []
    for row in chosen:
        print(f"versus-uml: {row.name}", flush=True)
        result = experiment(setting, row, wanted["measure_from"], wanted["stop"])
        results.append({"name": row.name, **result})
    outcome = {"kernel": os.uname().release, "ended": time.time(), "runs": results}
    Path("/mnt/linux.json").write_text(json.dumps(outcome, indent=1))


uml.first_process(main)
