"""A user-mode Linux kernel, its hosts and its bottleneck: what benches/versus-uml and validation/kernel-controls share.

`boot` starts the kernel, with a Python program as its first process. Everything after it is for that program, inside the
kernel: hosts are processes in network namespaces of their own, the namespace that the program begins in is the router, and
its device `out` to the receiver is the bottleneck:

    senders -- veth -- devices of the router, out -- veth -- receiver

HTB is the rate of the bottleneck, and the discipline is its leaf. Packets count without their Ethernet header, as in the
simulator. What a round trip takes besides is netem's on the way back, where it cannot disturb the queue. What is measured is
seen by a packet socket of the router.
"""

import ctypes
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path
from typing import NamedTuple

PACKET = 1500
# What a late timer may make up for, in packets.
BURST = 3
# By how late 99 of 100 packets may leave, as in the lab.
LATE_MS = 2.0
# The port of the receiver.
PORT = 5000
MAC = "02:00:00:00:00:01"
MODULES = ["veth", "sch_htb", "sch_netem"]
CLONE_NEWNET, POWER_OFF, FINIT_MODULE = 0x40000000, 0x4321FEDC, 313
TCP_NOTSENT_LOWAT, SO_ATTACH_FILTER, SO_RCVBUFFORCE, SO_TIMESTAMPNS, ETH_P_ALL = 25, 26, 33, 35, 3
libc = ctypes.CDLL(None, use_errno=True)


# ---------------------------------------------------------------- from outside


def package():
    """The kernel and its modules, of the package that was installed, or unpacked to $UML."""
    root = Path(os.environ.get("UML", "/")).resolve()
    kernel, modules = root / "usr/bin/linux.uml", root / "usr/lib/uml/modules"
    if not os.access(kernel, os.X_OK):
        raise RuntimeError(f"{kernel} is not there: install the Debian package user-mode-linux, or unpack it to $UML")
    return kernel, modules


def boot(program, folder, *arguments, limit, priority=None):
    """Runs a kernel whose first process is `program MODULES FOLDER ARGUMENTS`, for `limit` seconds at most.

    It sees `folder` as /mnt. Returns what it printed. With a `priority` it runs before other programs, which needs root.
    """
    kernel, modules = package()
    words = [str(word) for word in (program, modules, folder, *arguments)]
    if any(letter.isspace() or letter == "," for word in words for letter in word):
        raise RuntimeError(f"{' '.join(words)}: the kernel's command line takes no spaces and no commas; move the tree")
    with tempfile.TemporaryDirectory() as scratch:
        # It ends with its first process, and that when it fails; else when time is up.
        command = ["timeout", "--kill-after=5", str(int(limit)), *(["chrt", "-f", str(priority)] if priority else [])]
        command += [str(kernel), f"uml_dir={scratch}", "mem=512M", "rootfstype=hostfs", "rootflags=/", "ro"]
        command += ["con=null", "con0=null,fd:1", "quiet", "init=/usr/bin/python3", "--", *words]
        console = Path(scratch) / "console"
        with console.open("wb") as output:
            subprocess.run(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False)
        return console.read_text(errors="replace")


# ---------------------------------------------------------------- inside


def run(command):
    return subprocess.run(command.split(), check=True, stdout=subprocess.PIPE, text=True).stdout


def system(name, *arguments):
    """A call of libc that must not fail."""
    if getattr(libc, name)(*arguments) < 0:
        raise OSError(ctypes.get_errno(), f"{name}{arguments}")


def sleep_until(moment):
    while (left := moment - time.time()) > 0:
        time.sleep(left)


def first_process(work):
    """Does `work(folder of the modules)` in a kernel that has just started, and switches it off."""
    try:
        modules, folder = sys.argv[1:3]
        os.environ["PATH"] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        run("mount -t proc proc /proc")
        run(f"mount -t hostfs -o {folder} none /mnt")
        Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
        run("ip link set lo up")
        load(Path(modules), MODULES)
        work(Path(modules))
    except Exception:
        traceback.print_exc()
    finally:
        # The first process must not end.
        sys.stdout.flush()
        libc.reboot(POWER_OFF)


def load(modules, names):
    """Loads modules; those that the package lacks are part of its kernel."""
    files = {path.stem: path for path in modules.rglob("*.ko")}
    for name in names:
        if name in files:
            with open(files[name], "rb") as file:
                system("syscall", FINIT_MODULE, file.fileno(), b"", 0)


# ---------------------------------------------------------------- hosts


class Host:
    """A process in a namespace that `device` connects to the router.

    It has `addresses` of its subnet, `settings` below /proc/sys/net/ipv4, and does each of `works(zero)` when it gets time
    zero.
    """

    def __init__(self, device, subnet, works, settings, addresses=(2,)):
        self.device, self.subnet, self.settings, self.addresses = device, subnet, settings, addresses
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
        common = {"tcp_no_metrics_save": "1", "tcp_moderate_rcvbuf": "0", "tcp_autocorking": "0"}
        for name, value in (common | self.settings).items():
            Path(f"/proc/sys/net/ipv4/{name}").write_text(value)
        run("ip link set eth0 arp off gso_max_segs 1 up")
        for address in self.addresses:
            run(f"ip addr add {self.subnet}.{address}/24 dev eth0")
        run(f"ip route add default via {self.subnet}.1")

    def begin(self, zero):
        self.ours.send(struct.pack("d", zero))

    def stop(self):
        os.kill(self.pid, signal.SIGSTOP)

    def end(self):
        run(f"ip link del {self.device}")
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def window(kilobytes):
    """Settings for a receive window of so many kB. While it grows, Linux acknowledges every segment."""
    buffer = 2 * 1024 * kilobytes
    return {"tcp_rmem": f"4096 {buffer} {buffer}", "tcp_wmem": f"4096 65536 {buffer}"}


def bulk(control, here, peer, start):
    """TCP without end from port `here` from `start` seconds on."""

    def work(zero):
        with socket.socket() as tcp:
            tcp.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
            tcp.setsockopt(socket.IPPROTO_TCP, TCP_NOTSENT_LOWAT, 32 * 1460)
            tcp.bind(("", here))
            sleep_until(zero + start)
            tcp.connect((peer, PORT))
            while True:
                tcp.send(bytes(65536))

    return work


def sink(control="cubic"):
    """Reads what comes. DCTCP's receiver differs from the others'."""

    def read(tcp):
        # What is truncated is not copied.
        while tcp.recv(1 << 20, socket.MSG_TRUNC):
            pass

    def work(_):
        with socket.socket() as server:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            server.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
            server.bind(("", PORT))
            server.listen(64)
            while True:
                tcp, _ = server.accept()
                threading.Thread(target=read, args=[tcp]).start()

    return work


# ---------------------------------------------------------------- the bottleneck and what passes it


def bottleneck(rate, discipline):
    """The transmitter, of `rate` b/s: it counts IP packets, and asks the discipline when the last packet is through."""
    run("tc qdisc add dev out root handle 1: stab overhead -14 linklayer ethernet htb default 1")
    burst = f"burst {BURST * PACKET}b cburst {BURST * PACKET}b"
    run(f"tc class add dev out parent 1: classid 1:1 htb rate {rate:.0f}bit ceil {rate:.0f}bit quantum {PACKET} {burst}")
    run(f"tc qdisc add dev out parent 1:1 handle 2: {discipline}")


def quantile(values, share):
    return sorted(values)[int(share * (len(values) - 1))] if values else 0.0


class Passed(NamedTuple):
    """A packet that left the router."""

    at: float
    came: float
    size: int
    # Of its source.
    port: int
    marked: bool


class Lost(NamedTuple):
    came: float
    port: int


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
        # By port and identification: when it came, and its bytes. Identifications come again after 65,536.
        self.waiting = {}
        self.passed, self.lost = [], []

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
            if address[2] == socket.PACKET_OUTGOING:
                if key in self.waiting:
                    came, size = self.waiting.pop(key)
                    # The low bits of the second byte say whether it was marked.
                    self.passed.append(Passed(at, came, size, key[0], data[1] & 3 == 3))
                continue
            if size > PACKET:
                raise ValueError(f"a packet of {size} bytes")
            if key in self.waiting:
                self.lost.append(Lost(self.waiting[key][0], key[0]))
            self.waiting[key] = (at, size)

    def end(self):
        """What has not left until now is lost."""
        self.lost += [Lost(came, port) for (port, _), (came, _) in self.waiting.items()]
        self.socket.close()

    def lateness(self, rate, begin, end):
        """By how many seconds 99 of 100 packets left late at most: later than a shaper to `rate` could have let them go."""
        late, full = [], 0.0
        for it in self.passed:
            if begin <= it.at < end:
                late.append(it.at - max(it.came, full - 8 * BURST * PACKET / rate))
            # When the bucket will be full.
            full = max(full, it.at) + 8 * it.size / rate
        return quantile(late, 0.99)
