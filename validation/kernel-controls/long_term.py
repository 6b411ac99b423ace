#!/usr/bin/env python3
"""What BBR of a Linux kernel believes while packets are lost, each ms, as the first process of that kernel.

A setting is a rate, a round trip, `loss` in the words of tc-filter(8), applied to what comes from the sender, and seconds of
it. The losses begin half a second after the flow.
"""

import json
import socket
import struct
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import uml  # noqa: E402

PORT = 40000
MODULES = ["tcp_bbr", "sch_ingress", "cls_matchall", "cls_u32", "act_gact"]
TCP_INFO, TCP_CC_INFO = 11, 26
# Of struct tcp_info: the smoothed round trip in us.
SRTT = 68


def source(stop, seen):
    """A flow without end that writes to `seen`, each ms at which it changes: when, rate in b/s, pacing gain, round trip in s."""

    def work(zero):
        with socket.socket() as tcp:
            tcp.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"bbr")
            tcp.setsockopt(socket.IPPROTO_TCP, uml.TCP_NOTSENT_LOWAT, 32 * 1460)
            tcp.bind(("", PORT))
            uml.sleep_until(zero)
            tcp.connect(("10.2.0.2", uml.PORT))
            threading.Thread(target=watch, args=[tcp, zero]).start()
            while True:
                tcp.send(bytes(65536))

    def watch(tcp, zero):
        rows = []
        while (now := time.time() - zero) < stop:
            low, high, _, gain, _ = struct.unpack("5I", tcp.getsockopt(socket.IPPROTO_TCP, TCP_CC_INFO, 20))
            (srtt,) = struct.unpack_from("I", tcp.getsockopt(socket.IPPROTO_TCP, TCP_INFO, SRTT + 4), SRTT)
            row = [8 * (low | high << 32), gain / 256]
            if not rows or rows[-1][1:3] != row:
                rows.append([now, *row, srtt / 1e6])
            time.sleep(0.001)
        Path(seen).write_text(json.dumps(rows))

    return work


def experiment(setting, seen):
    settings = uml.window(4096)
    receiver = uml.Host("out", "10.2.0", [uml.sink("bbr")], settings)
    sender = uml.Host("in", "10.1.0", [source(setting["stop"], seen)], settings)
    rate = 1e6 * setting["rate"]
    uml.run(f"tc qdisc add dev in root netem limit 100000 delay {1e3 * setting['rtt'] + 8e6 * uml.PACKET / rate:.0f}us")
    uml.run("tc qdisc add dev in clsact")
    uml.bottleneck(rate, "pfifo limit 1000")
    watch = uml.Watch()
    zero = time.time() + 0.3
    for host in (receiver, sender):
        host.begin(zero)
    watch.listen(zero + 0.5)
    for number, loss in enumerate(setting["loss"], 1):
        uml.run(f"tc filter add dev in ingress pref {number} protocol ip {loss}")
    if "lasts" in setting:
        watch.listen(time.time() + setting["lasts"])
        uml.run("tc filter del dev in ingress pref 1")
    # The sender writes what it saw when its time is over.
    watch.listen(zero + setting["stop"] + 2)
    watch.end()
    lost = sorted(it.came - zero for it in watch.lost if it.came < zero + setting["stop"])
    left = sum(lost[0] <= it.came - zero < setting["stop"] for it in watch.passed) if lost else 0
    for host in (sender, receiver):
        host.end()
    return {
        "rows": json.loads(Path(seen).read_text()),
        "first_lost": lost[0] if lost else None,
        "share": len(lost) / max(1, left),
        "late_ms": 1e3 * watch.lateness(rate, zero + 0.5, zero + setting["stop"]),
    }


def main(modules):
    uml.load(modules, MODULES)
    results = []
    for number, setting in enumerate(json.loads(Path("/mnt/settings.json").read_text())):
        results.append(experiment(setting, f"/mnt/seen.{number}"))
        Path("/mnt/linux.json").write_text(json.dumps(results))


uml.first_process(main)
