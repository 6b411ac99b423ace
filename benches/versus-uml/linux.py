#!/usr/bin/env python3
"""The workloads of disciplines.py over the disciplines of a Linux kernel, as the first process of that.

A host is a process in a network namespace of its own. Hosts l1, l2, ... reach host r through a router, which is the
namespace that this process begins in. Each has a peer of its own: one of the addresses of r.

    l1, l2 .. -- veth -- p1, p2 ..  router  out -- veth -- r

The device `out` is the bottleneck: HTB is its rate, the discipline is the leaf. Packets count without their Ethernet
header, as in the simulator. All that a round trip takes besides is netem's on the way back, where it cannot disturb the
queue.

What is measured is seen by a packet socket of the router: when packets of a flow come, and when they leave `out`, each
known by its port and IP identification.
"""

import ctypes
import json
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path

from disciplines import PACKET, Setting, rows, workload

# The headers of IP and UDP. Flow i sends from port FIRST_PORT + i, by which it is known.
HEADERS, FIRST_PORT, PORT = 28, 6000, 5000
# What a late timer may make up for, in packets.
BURST = 3
MAC = "02:00:00:00:00:01"
# And, as far as it is there, the module of each discipline.
MODULES = ["veth", "sch_htb", "sch_netem", "cls_u32"]
CLONE_NEWNET, POWER_OFF, FINIT_MODULE = 0x40000000, 0x4321FEDC, 313
TCP_NOTSENT_LOWAT, SO_ATTACH_FILTER, SO_RCVBUFFORCE, SO_TIMESTAMPNS, ETH_P_ALL = 25, 26, 33, 35, 3
libc = ctypes.CDLL(None, use_errno=True)


def run(command):
    return subprocess.run(command.split(), check=True, stdout=subprocess.PIPE, text=True).stdout


def system(name, *arguments):
    """A call of libc that must not fail."""
    if getattr(libc, name)(*arguments) < 0:
        raise OSError(ctypes.get_errno(), f"{name}{arguments}")


def sleep_until(moment):
    while (left := moment - time.time()) > 0:
        time.sleep(left)


# ---------------------------------------------------------------- hosts


class Host:
    """A process in a namespace that `device` connects to the router.

    It has `addresses` and does each of `works(zero)` when it gets time zero.
    """

    def __init__(self, device, subnet, addresses, works):
        self.device, self.subnet, self.addresses = device, subnet, addresses
        self.ours, theirs = socket.socketpair()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                self.live(theirs, works)
            except Exception:
                traceback.print_exc()
            finally:
                os._exit(1)
        self.ours.recv(1)
        # One address for both ends saves asking for it: DRR would drop the question.
        run(f"ip link add {device} address {MAC} type veth peer name eth0 address {MAC} netns {self.pid}")
        run(f"ip addr add {subnet}.1/24 dev {device}")
        run(f"ip link set {device} arp off up")
        self.ours.send(b"!")
        self.ours.recv(1)

    def live(self, theirs, works):
        system("unshare", CLONE_NEWNET)
        theirs.send(b"!")
        theirs.recv(1)
        self.set_up()
        theirs.send(b"!")
        zero = struct.unpack("d", theirs.recv(8))[0]
        threads = [threading.Thread(target=work, args=[zero]) for work in works]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def set_up(self):
        """What the lab sets at the hosts of such flows, and segments that are packets."""
        settings = {
            "tcp_timestamps": "0",
            "tcp_no_metrics_save": "1",
            "tcp_moderate_rcvbuf": "0",
            "tcp_autocorking": "0",
            # A window of 512 kB. While it grows, two segments by one, Linux acknowledges every segment: more takes seconds.
            "tcp_rmem": "4096 1048576 1048576",
            "tcp_wmem": "4096 65536 1048576",
        }
        for name, value in settings.items():
            Path(f"/proc/sys/net/ipv4/{name}").write_text(value)
        run("ip link set eth0 arp off gso_max_segs 1 up")
        for address in self.addresses:
            run(f"ip addr add {self.subnet}.{address}/24 dev eth0")
        run(f"ip route add default via {self.subnet}.1")

    def end(self):
        run(f"ip link del {self.device}")
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def source(number, flow, start):
    """What sends flow `number` of a workload: CUBIC without end, or datagrams at a constant rate."""
    here, peer = ("", FIRST_PORT + number), (f"10.2.0.{1 + flow.host}", PORT)

    def bulk(zero):
        with socket.socket() as tcp:
            tcp.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
            tcp.setsockopt(socket.IPPROTO_TCP, TCP_NOTSENT_LOWAT, 32 * 1460)
            tcp.bind(here)
            sleep_until(zero + start)
            tcp.connect(peer)
            while True:
                tcp.send(bytes(65536))

    def cbr(zero):
        with socket.socket(type=socket.SOCK_DGRAM) as udp:
            udp.bind(here)
            udp.connect(peer)
            due = zero
            while True:
                sleep_until(due)
                udp.send(bytes(PACKET - HEADERS))
                due += 8 * PACKET / (1e6 * flow.rate)

    return cbr if flow.rate else bulk


def read(tcp):
    # What is truncated is not copied.
    while tcp.recv(1 << 20, socket.MSG_TRUNC):
        pass


def sink(_):
    """Reads what comes. Datagrams may lie."""
    udp = socket.socket(type=socket.SOCK_DGRAM)
    udp.bind(("", PORT))
    with socket.create_server(("", PORT)) as server:
        while True:
            tcp, _ = server.accept()
            threading.Thread(target=read, args=[tcp]).start()


# ---------------------------------------------------------------- the bottleneck


def bottleneck(setting, row):
    """The transmitter: it counts IP packets, and asks the discipline when the last packet is through."""
    run("tc qdisc add dev out root handle 1: stab overhead -14 linklayer ethernet htb default 1")
    rate, burst = setting.part(1), f"{BURST * PACKET}b"
    run(f"tc class add dev out parent 1: classid 1:1 htb rate {rate} ceil {rate} quantum {PACKET} burst {burst} cburst {burst}")
    run(f"tc qdisc add dev out parent 1:1 handle 2: {row.tc}")
    kind = row.tc.split()[0]
    for it in row.classes:
        # The bands of prio are there.
        if it.arguments:
            run(f"tc class add dev out parent 2:{it.parent or ''} classid 2:{it.number} {kind} {it.arguments}")
        if it.hosts:
            run(f"tc qdisc add dev out parent 2:{it.number} {it.leaf}")
        for host in it.hosts:
            run(f"tc filter add dev out parent 2: protocol ip u32 match ip src 10.1.{host}.2 flowid 2:{it.number}")


def dropped():
    """What tc says was dropped."""
    qdiscs = json.loads(run("tc -s -j qdisc show dev out"))
    return next(qdisc["drops"] for qdisc in qdiscs if qdisc.get("root"))


# ---------------------------------------------------------------- measuring


def quantile(values, share):
    return sorted(values)[int(share * (len(values) - 1))] if values else 0.0


class Watch:
    """All packets of flows that come to the router and leave it for `r`."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL))
        self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
        self.socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        # Packets from 10.1.0.0/16 only, and of them 22 bytes: acknowledgements are as many.
        program = [(0x28, 0, 0, 12), (0x15, 0, 1, 0x0A01), (0x06, 0, 0, 22), (0x06, 0, 0, 0)]
        code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in program))
        attached = struct.pack("HxxxxxxP", len(program), ctypes.addressof(code))
        self.socket.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, attached)
        # By flow and identification: when it came and its bytes; when it left.
        self.came, self.left = {}, {}

    def listen(self, moment):
        """Takes all packets that were seen before `moment`, however late we are."""
        at = 0.0
        while at < moment:
            self.socket.settimeout(max(moment - time.time(), 0.01))
            try:
                data, ancillary, _, address = self.socket.recvmsg(22, 64)
            except TimeoutError:
                return
            seconds, nanoseconds = struct.unpack("qq", ancillary[0][2])
            size, identification = struct.unpack(">HH", data[2:6])
            number = struct.unpack(">H", data[20:22])[0] - FIRST_PORT
            key, at = (number, identification), seconds + nanoseconds / 1e9
            if address[2] == socket.PACKET_OUTGOING:
                self.left[key] = at
            elif key in self.came or size > PACKET:
                raise ValueError(f"a packet of {size} bytes, number {key}: they cannot be distinguished")
            else:
                self.came[key] = (at, size)

    def flow(self, i, one_way, begin, end):
        """What flow `i`, whose packets take `one_way` without queues, got between two moments."""
        came = {key: it for key, it in self.came.items() if key[0] == i}
        left = [(at, *came[key]) for key, at in self.left.items() if key[0] == i and begin <= at < end]
        delays = [one_way + at - then for at, then, _ in left]
        sent = [key for key, (at, _) in came.items() if begin <= at < end]
        return {
            "throughput_mbps": sum(8 * size for _, _, size in left) / (end - begin) / 1e6,
            "delay_p50_ms": 1e3 * quantile(delays, 0.5),
            "delay_p95_ms": 1e3 * quantile(delays, 0.95),
            "sent_packets": len(sent),
            "dropped_packets": sum(key not in self.left for key in sent),
        }

    def lateness(self, rate, begin, end):
        """By how many seconds 99 of 100 packets left late at most: later than a shaper to `rate` could have let them go."""
        late, full = [], 0.0
        for at, key in sorted((at, key) for key, at in self.left.items()):
            came, size = self.came[key]
            if begin <= at < end:
                late.append(at - max(came, full - 8 * BURST * PACKET / rate))
            # When the bucket will be full.
            full = max(full, at) + 8 * size / rate
        return quantile(late, 0.99)


def experiment(setting, row, measure_from, stop):
    flows, _ = workload(row.workload, setting)
    hosts = sorted({flow.host for flow in flows})
    receiver = Host("out", "10.2.0", [1 + host for host in hosts], [sink])
    draw = random.Random(3)
    works = {host: [] for host in hosts}
    for number, flow in enumerate(flows):
        works[flow.host].append(source(number, flow, draw.random()))
    senders = [Host(f"p{host}", f"10.1.{host}", [2], works[host]) for host in hosts]
    for host in hosts:
        # A round trip without queues; the 40 bytes of an acknowledgement take 0.04 ms more.
        delay = setting.one_way(host) + (10 + 2 * host) / 1e3
        run(f"tc qdisc add dev p{host} root netem limit 10000 delay {1e6 * delay:.0f}us")
    bottleneck(setting, row)
    watch = Watch()
    zero = time.time() + 2
    for host in [receiver, *senders]:
        host.ours.send(struct.pack("d", zero))
    # What came before the end leaves within a second, and what sockets still hold when senders stop, within another.
    watch.listen(zero + stop + 1)
    for host in senders:
        os.kill(host.pid, signal.SIGSTOP)
    watch.listen(time.time() + 1)
    begin, end = zero + measure_from, zero + stop
    result = {
        "flows": {flow.name: watch.flow(i, setting.one_way(flow.host), begin, end) for i, flow in enumerate(flows)},
        "late_ms": 1e3 * watch.lateness(1e6 * setting.rate * row.shaped, begin, end),
        "dropped": sum(key not in watch.left for key in watch.came),
        "dropped_by_tc": dropped(),
        "tc": run("tc -s -d qdisc show dev out"),
    }
    for host in [*senders, receiver]:
        host.end()
    return result


def main():
    modules, folder = sys.argv[1:3]
    os.environ["PATH"] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    run("mount -t proc proc /proc")
    run(f"mount -t hostfs -o {folder} none /mnt")
    files = {path.stem: path for path in Path(modules).rglob("*.ko")}
    wanted = json.loads(Path("/mnt/wanted.json").read_text())
    setting = Setting(**wanted["setting"])
    chosen = [row for row in rows(setting) if row.name in wanted["names"]]
    kinds = {tc.split()[0] for row in chosen for tc in [row.tc, *(it.leaf for it in row.classes)]}
    # FIFO is not a module.
    for module in MODULES + sorted(f"sch_{kind}" for kind in kinds if f"sch_{kind}" in files.keys() - set(MODULES)):
        with open(files[module], "rb") as file:
            system("syscall", FINIT_MODULE, file.fileno(), b"", 0)
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    run("ip link set lo up")
    results = []
    for row in chosen:
        print(f"versus-uml: {row.name}", flush=True)
        result = experiment(setting, row, wanted["measure_from"], wanted["stop"])
        results.append({"name": row.name, **result})
    outcome = {"kernel": os.uname().release, "ended": time.time(), "runs": results}
    Path("/mnt/linux.json").write_text(json.dumps(outcome, indent=1))


try:
    main()
except Exception:
    traceback.print_exc()
finally:
    # The first process must not end.
    sys.stdout.flush()
    libc.reboot(POWER_OFF)
