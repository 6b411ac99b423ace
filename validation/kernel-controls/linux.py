#!/usr/bin/env python3
"""Flows of a Linux kernel over a bottleneck, for each setting of a file, as the first process of that kernel.

Three namespaces: the senders', this one, which is the router, and the receiver's. The device `out` to the receiver is the
bottleneck: HTB is its rate, the discipline is the leaf. Packets count without their Ethernet header, as in the simulator.
The round trip is netem's on the way back, where it cannot disturb the queue.

What is measured is seen by a packet socket of the router: when packets of a connection come, and when they leave `out`,
each known by its port and its IP identification.
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

PACKET = 1500
# What a late timer may make up for, in packets.
BURST = 3
FIRST_PORT = 40000
MAC = "02:00:00:00:00:01"
MODULES = ["veth", "sch_htb", "sch_netem", "sch_red", "sch_fq_codel", "tcp_bbr", "tcp_dctcp", "tcp_vegas"]
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

    def __init__(self, device, subnet, ecn, work):
        self.device, self.subnet, self.ecn = device, subnet, ecn
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
            "tcp_ecn": "1" if self.ecn else "0",
            "tcp_no_metrics_save": "1",
            "tcp_moderate_rcvbuf": "0",
            "tcp_autocorking": "0",
            # A window of 4 MiB.
            "tcp_rmem": "4096 8388608 8388608",
            "tcp_wmem": "4096 65536 8388608",
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


def sources(control, starts):
    """Sources without end, one for each moment of `starts`."""

    def source(port, moment):
        with socket.socket() as tcp:
            tcp.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
            tcp.setsockopt(socket.IPPROTO_TCP, TCP_NOTSENT_LOWAT, 32 * 1460)
            tcp.bind(("10.1.0.2", port))
            sleep_until(moment)
            tcp.connect(("10.2.0.2", 5000))
            while True:
                tcp.send(bytes(65536))

    def work(zero):
        for number, start in enumerate(starts):
            threading.Thread(target=source, args=[FIRST_PORT + number, zero + start]).start()
        signal.pause()

    return work


def read(tcp):
    # What is truncated is not copied.
    while tcp.recv(1 << 20, socket.MSG_TRUNC):
        pass


def sink(control):
    """Reads what comes. DCTCP's receiver differs from the others'."""

    def work(_):
        with socket.socket() as server:
            server.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
            server.bind(("10.2.0.2", 5000))
            server.listen(64)
            while True:
                tcp, _ = server.accept()
                threading.Thread(target=read, args=[tcp]).start()

    return work


# ---------------------------------------------------------------- measuring


def quantile(values, share):
    return sorted(values)[int(share * (len(values) - 1))] if values else 0.0


class Watch:
    """All packets of flows that come to the router and leave it for the receiver."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL))
        self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 128 << 20)
        self.socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        # Packets from 10.1.0.0/16 only, and of them 22 bytes: acknowledgements are as many.
        program = [(0x28, 0, 0, 12), (0x15, 0, 1, 0x0A01), (0x06, 0, 0, 22), (0x06, 0, 0, 0)]
        code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in program))
        attached = struct.pack("HxxxxxxP", len(program), ctypes.addressof(code))
        self.socket.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, attached)
        # By port and identification: when it came, its bytes and when it left. Identifications come again after 65,536.
        self.waiting, self.done = {}, []
        self.lost = []

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
            key, at = (data[20] << 8 | data[21], identification), seconds + nanoseconds / 1e9
            if address[2] != socket.PACKET_OUTGOING:
                if key in self.waiting:
                    self.lost.append(self.waiting[key][0])
                if size > PACKET:
                    raise ValueError(f"a packet of {size} bytes")
                self.waiting[key] = (at, size)
            elif key in self.waiting:
                came, size = self.waiting.pop(key)
                # The low bits of the second byte say whether it was marked.
                self.done.append((at, came, size, key[0], data[1] & 3 == 3))

    def end(self):
        self.lost += [came for came, _ in self.waiting.values()]
        self.socket.close()

    def lateness(self, rate, begin, end):
        """By how many seconds 99 of 100 packets left late at most: later than HTB could have let them go."""
        late, full = [], 0.0
        for at, came, size, _, _ in self.done:
            if begin <= at < end:
                late.append(at - max(came, full - 8 * BURST * PACKET / rate))
            # When the bucket will be full.
            full = max(full, at) + 8 * size / rate
        return quantile(late, 0.99)


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
    ecn = control == "dctcp"
    receiver = Host("out", "10.2.0", ecn, sink(control))
    starts = [draw.random() for _ in range(setting["flows"])]
    sender = Host("in", "10.1.0", ecn, sources(control, starts))
    # The bottleneck's transmission is part of the round trip, but HTB lets a packet go when it begins.
    back = setting["rtt"] * 1e3 + 8e6 * PACKET / rate
    run(f"tc qdisc add dev in root netem limit 100000 delay {back:.0f}us")
    run("tc qdisc add dev out root handle 1: stab overhead -14 linklayer ethernet htb default 1")
    shape = f"rate {rate:.0f}bit ceil {rate:.0f}bit quantum {PACKET} burst {BURST * PACKET}b cburst {BURST * PACKET}b"
    run(f"tc class add dev out parent 1: classid 1:1 htb {shape}")
    run(f"tc qdisc add dev out parent 1:1 handle 2: {discipline(setting)}")
    watch = Watch()
    zero = time.time() + 0.5
    for host in (receiver, sender):
        host.ours.send(struct.pack("d", zero))
    watch.listen(zero + stop)
    os.kill(sender.pid, signal.SIGSTOP)
    watch.listen(time.time() + 0.5)
    watch.end()
    begin, end = zero + measure_from, zero + stop - 1
    left = [row for row in watch.done if begin <= row[0] < end]
    lost = sum(begin <= came < end for came in watch.lost)
    # Data only: acknowledgements of nothing and handshakes are short.
    flows = [sum(8 * size for _, _, size, port, _ in left if port == FIRST_PORT + i) for i in range(setting["flows"])]
    result = {
        "flows_mbps": [bits / (end - begin) / 1e6 for bits in flows],
        "utilisation": sum(flows) / (end - begin) / rate,
        "wait_p50_ms": 1e3 * quantile([at - came for at, came, *_ in left], 0.5),
        "drops": lost / max(1, lost + len(left)),
        "marks": sum(marked for *_, marked in left) / max(1, len(left)),
        "late_ms": 1e3 * watch.lateness(rate, begin, end),
    }
    for host in (sender, receiver):
        host.end()
    return result


def main():
    modules, folder, measure_from, stop, seed = sys.argv[1:6]
    os.environ["PATH"] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    run("mount -t proc proc /proc")
    run(f"mount -t hostfs -o {folder} none /mnt")
    files = {path.stem: path for path in Path(modules).rglob("*.ko")}
    for module in MODULES:
        with open(files[module], "rb") as file:
            system("syscall", FINIT_MODULE, file.fileno(), b"", 0)
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    run("ip link set lo up")
    draw, results = random.Random(int(seed)), []
    for setting in json.loads(Path("/mnt/settings.json").read_text()):
        results.append(experiment(setting, draw, float(measure_from), float(stop)))
        Path("/mnt/linux.json").write_text(json.dumps({"kernel": os.uname().release, "runs": results}, indent=1))


try:
    main()
except Exception:
    traceback.print_exc()
finally:
    # The first process must not end.
    sys.stdout.flush()
    libc.reboot(POWER_OFF)
