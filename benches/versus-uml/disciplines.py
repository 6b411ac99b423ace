"""What is compared: workloads, and for each discipline one row with our queue, tc's arguments and what is comparable.

`run` gives our queues to the simulator and the lab, linux.py those of tc to the kernel, table.py compares.
"""

from typing import NamedTuple

# One way over the wires: 10 ms of the bottleneck and 1 ms for each host's number at both ends, with access at 100 Mb/s.
ACCESS, PACKET = 100e6, 1500


class Setting(NamedTuple):
    """What the command line varies."""

    # Of the bottleneck, in Mb/s.
    rate: float = 10.0
    # TCP flows.
    flows: int = 5
    # Delay that PIE, CoDel and COBALT aim at in ms, if not their defaults.
    target: float | None = None

    def aim(self, default):
        return default if self.target is None else self.target

    def part(self, share):
        """A part of the link as tc and scenarios write it."""
        return f"{1000 * self.rate * share:.0f}kbit"

    def one_way(self, host):
        """Seconds from a host to its peer without queues."""
        return (10 + 2 * host) / 1e3 + 8 * PACKET * (2 / ACCESS + 1e-6 / self.rate)


class Flow(NamedTuple):
    # In the scenario.
    name: str
    # From host l{host} to r{host}.
    host: int
    # Datagrams in Mb/s; none: TCP without end.
    rate: float | None = None


class Class(NamedTuple):
    """A class of tc, number 2:NUMBER below 2:PARENT."""

    number: int
    arguments: str
    # Hosts whose flows belong to it; of an inner class none.
    hosts: tuple = ()
    parent: int = 0
    leaf: str = "pfifo limit 60"


class Row(NamedTuple):
    """A discipline: ours, and that of Linux."""

    workload: str
    name: str
    queue: str
    tc: str
    classes: tuple = ()
    # The first so many metrics of table.py measure the same.
    comparable: int = 4
    # The part of the link that it shapes to.
    shaped: float = 1.0


# ---------------------------------------------------------------- workloads


def workload(name, setting):
    """The flows of scenarios/parity/NAME.toml, and what sets the scenario so."""
    rate, n = setting.rate, setting.flows
    sets = {"topology.bottleneck.rate": setting.part(1)}
    if name == "queues":
        flood = 2 * rate / (n + 1)
        sets |= {"topology.pairs": n + 1, "flow.bulk.count": n, "flow.udp.source.rate": setting.part(2 / (n + 1))}
        sets |= {"flow.udp.from": f"l{n + 1}", "flow.udp.to": f"r{n + 1}"}
        return [Flow(f"bulk.{i}", i) for i in range(1, n + 1)] + [Flow("udp", n + 1, flood)], sets
    if name == "hosts":
        sets |= {"flow.many.count": n - 1, "flow.udp.source.rate": setting.part(2 / 3)}
        return [Flow("one", 1), *(Flow(f"many.{i}", 2) for i in range(1, n)), Flow("udp", 3, 2 * rate / 3)], sets
    sets |= {"topology.pairs": n + 2, "flow.b.count": n - 2, "flow.flood.from": f"l{n + 2}"}
    sets |= {"flow.flood.to": f"r{n + 2}"}
    sets |= {"flow.rt.source.rate": setting.part(0.1), "flow.flood.source.rate": setting.part(0.3)}
    in_b = [Flow(f"b.{i}", i + 3) for i in range(1, n - 1)]
    rt, flood = Flow("rt", 1, 0.1 * rate), Flow("flood", n + 2, 0.3 * rate)
    return [rt, Flow("a.1", 2), Flow("a.2", 3), *in_b, flood], sets


# ---------------------------------------------------------------- disciplines


def per_flow(setting, leaf):
    """Classes of Linux's DRR, one for each flow of `queues`."""
    return tuple(Class(i, "quantum 1500", (i,), 0, leaf) for i in range(1, setting.flows + 2))


def three(setting, rt, a, b, parent=0):
    """The classes of `classes`."""
    last = setting.flows + 2
    hosts = [(1,), (2, 3), tuple(range(4, last + 1))]
    arguments = [rt, a, b]
    return tuple(Class(2 + i, arguments[i], hosts[i], parent) for i in range(3))


def htb(setting, name, a, b):
    """Ours and Linux's HTB: a link of .95 of the bottleneck, whose rates and ceilings are what `a` and `b` say.

    Buckets and turns are given, because defaults differ.
    """
    part = setting.part
    # What 10 ms are at the rate of the whole, and a packet: the manual's timer.
    bucket = f"{setting.rate * 1e6 / 8 / 100 + PACKET:.0f}"

    def ours(values):
        values = dict(zip(["rate", "ceil", "prio", "quantum"], values))
        pairs = [f'rate = "{part(values["rate"])}"', f'ceil = "{part(values["ceil"])}"']
        pairs += [f'prio = {values["prio"]}', f'quantum = "{values["quantum"]}B"']
        return "{ parent = \"link\", " + ", ".join(pairs) + f', burst = "{bucket}B", cburst = "{bucket}B" }}'

    def theirs(values):
        rate, ceil, prio, quantum = values
        return f"rate {part(rate)} ceil {part(ceil)} prio {prio} quantum {quantum} burst {bucket}b cburst {bucket}b"

    rt = (0.15, 0.95, 0, 1500)
    link = part(0.95)
    queue = f"""{{ kind = "htb", limit = "60p", class = {{
        link = {{ rate = "{link}", ceil = "{link}", burst = "{bucket}B", cburst = "{bucket}B" }},
        rt = {ours(rt)}, a = {ours(a)}, b = {ours(b)} }} }}"""
    top = Class(1, f"rate {link} ceil {link} burst {bucket}b cburst {bucket}b quantum 1500")
    classes = (top, *three(setting, *map(theirs, [rt, a, b]), parent=1))
    return Row("classes", name, queue, "htb", classes, shaped=0.95)


def hfsc(setting, name, rt, a, b):
    """Ours and Linux's H-FSC; curves as {"rt": (m1, d in ms, m2), "ls": m2, "ul": m2}, rates as parts of the link."""
    part = setting.part

    def curve(value):
        return value if isinstance(value, tuple) else (value, 0, value)

    def ours(curves):
        text = []
        for key, value in curves.items():
            m1, d, m2 = curve(value)
            text += [f'{key}_m1 = "{part(m1)}"', f'{key}_d = "{d}ms"', f'{key}_m2 = "{part(m2)}"']
        return "{ " + ", ".join(text) + " }"

    def theirs(curves):
        text = []
        for key, value in curves.items():
            m1, d, m2 = curve(value)
            text.append(f"{key} m1 {part(m1)} d {d}ms m2 {part(m2)}" if d else f"{key} m2 {part(m2)}")
        return " ".join(text)

    queue = f'{{ kind = "hfsc", limit = "60p", class = {{ rt = {ours(rt)}, a = {ours(a)}, b = {ours(b)} }} }}'
    return Row("classes", name, queue, "hfsc", three(setting, theirs(rt), theirs(a), theirs(b)))


def prio(setting, name, order):
    ranks = {key: order.index(key) for key in ["rt", "a", "b"]}
    classes = ", ".join(f"{key} = {{ prio = {rank} }}" for key, rank in ranks.items())
    queue = f'{{ kind = "prio", limit = "60p", class = {{ {classes} }} }}'
    by_class = three(setting, "", "", "")
    # Bands of tc are numbered from 1, and are there without being made.
    bands = tuple(it._replace(number=1 + rank) for it, rank in zip(by_class, ranks.values()))
    return Row("classes", name, queue, "prio bands 3", bands)


def rows(setting):
    """Each discipline that is compared."""
    pie = f"limit 1000 target {setting.aim(15):g}ms tupdate 15ms alpha 2 beta 20"
    codel = f'target = "{setting.aim(5):g}ms", interval = "{20 * setting.aim(5):g}ms"'
    rtt = f"rtt {20 * setting.aim(5):g}ms"
    cake = f"besteffort no-ack-filter raw memlimit 4mb {rtt}"
    fq = "limit 1000 flow_limit 100 quantum 3028 initial_quantum 15140 orphan_mask 65535"
    our_cake = f'kind = "cake", limit = "4MB", tins = "besteffort", {codel}'
    # Linux's turns follow the rate of its shaper only.
    ours_unlimited = f'{our_cake}, quantum = "1514B"'
    return [
        Row("queues", "fifo", '{ kind = "fifo", limit = "60p" }', "pfifo limit 60"),
        # Linux's counts bytes, spaces drops as the paper of 1993 does, and uses a power of two as the weight of its average:
        # the burst is what makes tc choose 2^-9.
        Row(
            "queues",
            "red",
            '{ kind = "red", limit = "150kB", min_th = "15kB", max_th = "75kB", max_p = 0.1, w_q = 0.001953125,'
            ' wait = false, mean_pktsize = "1500B" }',
            "red limit 150000 min 15000 max 75000 avpkt 1500 burst 80 probability 0.1"
            f" bandwidth {setting.part(1)}",
        ),
        # A class of Linux's DRR has a queue of its own, here with a sixth of the buffer that ours share: only throughput is
        # comparable. SFQ is a round robin over one buffer with drops from the longest queue, as ours is.
        Row(
            "queues",
            "drr",
            '{ kind = "drr", limit = "100p" }',
            "drr",
            per_flow(setting, f"pfifo_head_drop limit {100 // (setting.flows + 1) + 1}"),
            comparable=1,
        ),
        Row(
            "queues",
            "drr/sfq",
            '{ kind = "drr", limit = "100p" }',
            "sfq limit 100 quantum 1500 divisor 65536 headdrop",
        ),
        # A tail drop, as in the paper. As many buckets as there can be, so that no two flows meet in one.
        Row(
            "queues",
            "sfq",
            '{ kind = "sfq", limit = "100p", buckets = 65536, perturb = "0s" }',
            "sfq limit 100 quantum 1500 divisor 65536",
        ),
        Row(
            "queues",
            "fq_codel",
            f'{{ kind = "fq_codel", limit = "1000p", {codel} }}',
            f"fq_codel limit 1000 flows 65535 quantum 1514 target {setting.aim(5):g}ms"
            f" interval {20 * setting.aim(5):g}ms",
        ),
        Row("queues", "pie", f'{{ kind = "pie", limit = "1000p", target = "{setting.aim(15):g}ms" }}', f"pie {pie}"),
        # The kernel of the package has no fq_pie. A PIE behind each class of DRR is the same for flows that always have packets.
        Row(
            "queues",
            "fq_pie",
            f'{{ kind = "fq_pie", limit = "1000p", target = "{setting.aim(15):g}ms" }}',
            "drr",
            per_flow(setting, f"pie {pie}"),
        ),
        # Packets that a router forwards have no pacing rate of a sender. As many flows as there can be, so that no two meet.
        Row("queues", "fq", '{ kind = "fq", limit = "1000p" }', f"fq {fq}"),
        # Each is held below its share, so that the link idles.
        Row(
            "queues",
            "fq maxrate",
            f'{{ kind = "fq", limit = "1000p", maxrate = "{setting.part(0.75 / (setting.flows + 1))}" }}',
            f"fq {fq} maxrate {setting.part(0.75 / (setting.flows + 1))}",
            shaped=0.75,
        ),
        Row("queues", "cake", f"{{ {ours_unlimited} }}", f"cake unlimited triple-isolate {cake}"),
        # Its own shaper, below the rate of the link.
        Row(
            "queues",
            "cake shaper",
            f'{{ {our_cake}, bandwidth = "{setting.part(0.9)}" }}',
            f"cake bandwidth {setting.part(0.9)} triple-isolate {cake}",
            shaped=0.9,
        ),
        Row("hosts", "cake triple", f'{{ {ours_unlimited}, hosts = "triple" }}', f"cake unlimited triple-isolate {cake}"),
        Row("hosts", "cake source", f'{{ {ours_unlimited}, hosts = "source" }}', f"cake unlimited srchost {cake}"),
        Row("hosts", "cake flows", f'{{ {ours_unlimited}, hosts = "none" }}', f"cake unlimited flows {cake}"),
        prio(setting, "prio", ["rt", "a", "b"]),
        prio(setting, "prio b", ["rt", "b", "a"]),
        # Rate, ceiling, priority, turn: a ceiling binds; what is left goes 1 : 2; it goes to the higher priority.
        htb(setting, "htb ceil", (0.2, 0.25, 0, 1500), (0.5, 0.95, 0, 1500)),
        htb(setting, "htb turn", (0.2, 0.95, 0, 1500), (0.5, 0.95, 0, 3000)),
        htb(setting, "htb prio", (0.2, 0.95, 0, 1500), (0.5, 0.95, 1, 1500)),
        # Shares by virtual times; a real-time curve beyond its share; an upper limit.
        hfsc(setting, "hfsc ls", {"rt": (0.4, 10, 0.12), "ls": 0.12}, {"ls": 0.3}, {"ls": 0.58}),
        hfsc(setting, "hfsc rt", {"rt": 0.12, "ls": 0.12}, {"rt": 0.35, "ls": 0.05}, {"ls": 0.6}),
        hfsc(setting, "hfsc ul", {"rt": 0.12, "ls": 0.12}, {"ls": 0.4, "ul": 0.2}, {"ls": 0.48}),
    ]
