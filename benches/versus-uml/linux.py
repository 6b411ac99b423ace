#!/usr/bin/env python3
"""The experiment of scenarios/parity/queues.toml over the disciplines of a Linux kernel, as the first process of that.

A host is a process in a network namespace of its own. Hosts l1 to l6 reach host r through a router, which is the
namespace that this process begins in:

    l1..l6 -- veth -- p1..p6  router  out -- veth -- r

The device `out` is the bottleneck: HTB is its rate, the discipline is the leaf. Packets count without their Ethernet
header, as in the simulator. All that a round trip takes besides is netem's on the way back, where it cannot disturb the
queue.

What is measured is seen by a packet socket of the router: when packets of a flow come, and when they leave `out`, each
known by its IP identification.
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

# The name in the scenario, and the discipline in the words of tc. A class of Linux's DRR has a queue of its own, here with a
# sixth of the buffer that ours share. SFQ is a round robin over one buffer with drops from the longest queue, as ours is.
DISCIPLINES = [
    ("fifo", "pfifo limit 60"),
    # The burst is what makes tc choose 2^-9 as the weight of the average.
    ("red", "red limit 150000 min 15000 max 75000 avpkt 1500 burst 80 probability 0.1 bandwidth 10mbit"),
    ("drr", "drr"),
    ("drr", "sfq limit 100 quantum 1500 divisor 65536 headdrop"),
    # As many queues as there can be, so that no two flows meet in one.
    ("fq_codel", "fq_codel limit 1000 flows 65535 quantum 1514 target 5ms interval 100ms"),
]
DRR_LIMIT = 17
# As in the scenario: flows of TCP, and bits per second, bytes and seconds. The headers are those of IP and UDP.
BULK = 5
RATE, UDP_RATE = 10e6, 3.33e6
PACKET, HEADERS = 1500, 28
# One way, without queues: wires, and a full packet through two access links of 100 Mb/s and the bottleneck.
ONE_WAY = {i: (10 + 2 * i) / 1e3 + 8 * PACKET * (2 / 100e6 + 1 / RATE) for i in range(1, BULK + 2)}
# What a late timer may make up for, in packets.
BURST = 3
MAC = "02:00:00:00:00:01"
MODULES = ["veth", "sch_htb", "sch_netem", "sch_red", "sch_drr", "sch_sfq", "sch_fq_codel", "cls_u32"]
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
    """A process in a namespace that `device` connects to the router; does `work(zero)` when it gets time zero."""

    def __init__(self, device, subnet, work):
        self.device, self.subnet = device, subnet
        self.ours, theirs = socket.socketpair()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                self.live(theirs, work)
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

    def live(self, theirs, work):
        system("unshare", CLONE_NEWNET)
        theirs.send(b"!")
        theirs.recv(1)
        self.set_up()
        theirs.send(b"!")
        work(struct.unpack("d", theirs.recv(8))[0])

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
        run(f"ip addr add {self.subnet}.2/24 dev eth0")
        run(f"ip route add default via {self.subnet}.1")

    def end(self):
        run(f"ip link del {self.device}")
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def bulk(start):
    """A source without end over CUBIC."""

    def work(zero):
        with socket.socket() as tcp:
            tcp.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
            tcp.setsockopt(socket.IPPROTO_TCP, TCP_NOTSENT_LOWAT, 32 * 1460)
            sleep_until(zero + start)
            tcp.connect(("10.2.0.2", 5000))
            while True:
                tcp.send(bytes(65536))

    return work


def cbr(zero):
    """Datagrams at a constant rate."""
    with socket.socket(type=socket.SOCK_DGRAM) as udp:
        udp.connect(("10.2.0.2", 5000))
        due = zero
        while True:
            sleep_until(due)
            udp.send(bytes(PACKET - HEADERS))
            due += 8 * PACKET / UDP_RATE


def read(tcp):
    # What is truncated is not copied.
    while tcp.recv(1 << 20, socket.MSG_TRUNC):
        pass


def sink(_):
    """Reads what comes. Datagrams may lie."""
    udp = socket.socket(type=socket.SOCK_DGRAM)
    udp.bind(("10.2.0.2", 5000))
    with socket.create_server(("10.2.0.2", 5000)) as server:
        for _ in range(BULK):
            tcp, _ = server.accept()
            threading.Thread(target=read, args=[tcp]).start()
        signal.pause()


# ---------------------------------------------------------------- the bottleneck


def bottleneck(discipline):
    """The transmitter: it counts IP packets, and asks the discipline when the last packet is through."""
    run("tc qdisc add dev out root handle 1: stab overhead -14 linklayer ethernet htb default 1")
    rate = f"rate {RATE:.0f}bit ceil {RATE:.0f}bit quantum {PACKET} burst {BURST * PACKET}b cburst {BURST * PACKET}b"
    run(f"tc class add dev out parent 1: classid 1:1 htb {rate}")
    run(f"tc qdisc add dev out parent 1:1 handle 2: {discipline}")
    if discipline != "drr":
        return
    for i in ONE_WAY:
        run(f"tc class add dev out parent 2: classid 2:{i} drr quantum {PACKET}")
        run(f"tc qdisc add dev out parent 2:{i} pfifo_head_drop limit {DRR_LIMIT}")
        run(f"tc filter add dev out parent 2: protocol ip u32 match ip src 10.1.{i}.2 flowid 2:{i}")


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
        # Packets from 10.1.0.0/16 only, and of them 20 bytes: acknowledgements are as many.
        program = [(0x28, 0, 0, 12), (0x15, 0, 1, 0x0A01), (0x06, 0, 0, 20), (0x06, 0, 0, 0)]
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
                data, ancillary, _, address = self.socket.recvmsg(20, 64)
            except TimeoutError:
                return
            seconds, nanoseconds = struct.unpack("qq", ancillary[0][2])
            size, identification = struct.unpack(">HH", data[2:6])
            key, at = (data[14], identification), seconds + nanoseconds / 1e9
            if address[2] == socket.PACKET_OUTGOING:
                self.left[key] = at
            elif key in self.came or size > PACKET:
                raise ValueError(f"a packet of {size} bytes, number {key}: they cannot be distinguished")
            else:
                self.came[key] = (at, size)

    def flow(self, i, begin, end):
        """What flow `i` got between two moments."""
        came = {key: it for key, it in self.came.items() if key[0] == i}
        left = [(at, *came[key]) for key, at in self.left.items() if key[0] == i and begin <= at < end]
        delays = [ONE_WAY[i] + at - then for at, then, _ in left]
        sent = [key for key, (at, _) in came.items() if begin <= at < end]
        return {
            "throughput_mbps": sum(8 * size for _, _, size in left) / (end - begin) / 1e6,
            "delay_p50_ms": 1e3 * quantile(delays, 0.5),
            "delay_p95_ms": 1e3 * quantile(delays, 0.95),
            "sent_packets": len(sent),
            "dropped_packets": sum(key not in self.left for key in sent),
        }

    def lateness(self, begin, end):
        """By how many seconds 99 of 100 packets left late at most: later than HTB could have let them go."""
        late, full = [], 0.0
        for at, key in sorted((at, key) for key, at in self.left.items()):
            came, size = self.came[key]
            if begin <= at < end:
                late.append(at - max(came, full - 8 * BURST * PACKET / RATE))
            # When the bucket will be full.
            full = max(full, at) + 8 * size / RATE
        return quantile(late, 0.99)


def experiment(discipline, measure_from, stop):
    receiver = Host("out", "10.2.0", sink)
    draw = random.Random(3)
    works = [bulk(draw.random()) for _ in range(BULK)] + [cbr]
    senders = [Host(f"p{i}", f"10.1.{i}", work) for i, work in enumerate(works, 1)]
    for i in ONE_WAY:
        # A round trip without queues; the 40 bytes of an acknowledgement take 0.04 ms more.
        run(f"tc qdisc add dev p{i} root netem limit 10000 delay {1e6 * (ONE_WAY[i] + (10 + 2 * i) / 1e3):.0f}us")
    bottleneck(discipline)
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
        "flows": [watch.flow(i, begin, end) for i in ONE_WAY],
        "late_ms": 1e3 * watch.lateness(begin, end),
        "dropped": sum(key not in watch.left for key in watch.came),
        "dropped_by_tc": dropped(),
        "tc": run("tc -s -d qdisc show dev out"),
    }
    for host in [*senders, receiver]:
        host.end()
    return result


def main():
    modules, folder, measure_from, stop = sys.argv[1:5]
    os.environ["PATH"] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    run("mount -t proc proc /proc")
    run(f"mount -t hostfs -o {folder} none /mnt")
    files = {path.stem: path for path in Path(modules).rglob("*.ko")}
    for module in MODULES:
        with open(files[module], "rb") as file:
            system("syscall", FINIT_MODULE, file.fileno(), b"", 0)
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    run("ip link set lo up")
    results = []
    for name, discipline in DISCIPLINES:
        print(f"versus-uml: {discipline}", flush=True)
        result = experiment(discipline, float(measure_from), float(stop))
        results.append({"queue": name, "discipline": discipline, **result})
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
