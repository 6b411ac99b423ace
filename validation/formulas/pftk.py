"""Reno's rate under random loss, against Padhye, Firoiu, Towsley, Kurose, "Modeling TCP Throughput", SIGCOMM 1998. `check` calls it.

    f(p) = 1 + p + 2 p^2 + 4 p^3 + 8 p^4 + 16 p^5 + 32 p^6

timeouts  The paper's timeouts alone, where its assumptions hold: with a window of one packet each loss costs a timeout, which
          doubles up to 64 T0 and starts at T0 again after an acknowledgement. A packet takes R + p f(p) T0/(1 - p) in the mean.
          `min_rto` is T0 as long as it exceeds 3 R, the timeout after the first sample of a constant round trip.

pftk      The whole model, with a window W in the mean before a loss and a share Q of losses that need a timeout:

          W = (2 + b)/(3 b) + sqrt(8 (1 - p)/(3 b p) + ((2 + b)/(3 b))^2)
          Q = min(1, (1 - (1 - p)^3) (1 + (1 - p)^3 (1 - (1 - p)^(W - 3)))/(1 - (1 - p)^W))
          packets sent per second = ((1 - p)/p + W + Q/(1 - p)) / (R (b W/2 + 1) + Q f(p) T0/(1 - p))

          It is recorded, not judged: it takes all packets of a round trip after a lost one for lost, where the simulator's
          losses are independent; and it puts means in place of what varies. A second line is the paper's own process, drawn
          round trip by round trip: how far the formula is off under its own assumptions.
"""

import math

import common


def doubling(p):
    """f(p)."""
    return 1 + p + 2 * p**2 + 4 * p**3 + 8 * p**4 + 16 * p**5 + 32 * p**6


def model(p, b):
    """W and Q."""
    part = (2 + b) / (3 * b)
    window = part + math.sqrt(8 * (1 - p) / (3 * b * p) + part**2)
    kept = (1 - p) ** 3
    return window, min(1, (1 - kept) * (1 + kept * (1 - (1 - p) ** (window - 3))) / (1 - (1 - p) ** window))


def rate(p, b, trip, timeout):
    """Packets per second of the whole model."""
    window, share = model(p, b)
    sent = (1 - p) / p + window + share / (1 - p)
    return sent / (trip * (b * window / 2 + 1) + share * doubling(p) * timeout / (1 - p))


def process(draw, p, b, trip, timeout, losses=300):
    """Packets per second of what the formula describes: a window that grows by 1/b a round trip and loses the rest of one."""
    window, packets, seconds = 2.0, 0, 0.0
    for _ in range(losses):
        ahead = first_loss(draw, p)
        while ahead >= int(window):
            ahead -= int(window)
            packets, seconds, window = packets + int(window), seconds + trip, window + 1 / b
        # The packets before the lost one are acknowledged, and release as many in a last round trip.
        packets, seconds = packets + int(window) + ahead, seconds + 2 * trip
        if min(first_loss(draw, p), ahead) < 3:
            tries = 1 + first_loss(draw, 1 - p)
            packets += tries
            seconds += sum(timeout * min(2**n, 64) for n in range(tries))
        window = max(1.0, window / 2)
    return packets / seconds


def first_loss(draw, p):
    """Packets before the first that is lost."""
    return int(math.log(1 - draw.random()) / math.log(1 - p))


def between(draw, low, high):
    """Uniform in the logarithm."""
    return math.exp(draw.uniform(math.log(low), math.log(high)))


def flow(checks, p, trip, length, tcp):
    """Rows of a flow over a link that loses packets and never makes them wait."""
    wire = 0.7 * p if checks.wrong == "loss" else p
    text = f"""stop = "{round(length * 1e9)}ns"
measure_from = "{round(length * 1e8)}ns"
link.l = {{ from = "a", to = "b", rate = "10Gbit", delay = "{round(trip / 2 * 1e9)}ns", loss = {wire}, queue = {{ kind = "fifo", limit = "100000p" }}, back = {{ loss = 0 }} }}
flow.f = {{ from = "a", to = "b", tcp = {{ profile = "rfc", algorithm = "reno", syn = false, {tcp} }} }}
"""
    return common.read_csv(checks.run(text, checks.seeds) / "flows.csv")


def timeouts(checks):
    """Packets per second with a window of one packet."""
    draw = checks.draw
    p, trip, size = between(draw, 0.01, 0.2), between(draw, 0.01, 0.2), draw.randint(200, 1460)
    timeout = trip * draw.uniform(3.5, 20)
    # The packet and its acknowledgement of 40 bytes at 10 Gb/s.
    expected = 1 / (trip + 8 * (size + 80) / 1e10 + p * doubling(p) * timeout / (1 - p))
    length = 2000 / expected
    tcp = f'segment = "{size}B", window = "1p", initial_window = "1p", delayed_ack = "off", max_backoff = 64, max_rto = "1000s"'
    tcp += f', min_rto = "{round(timeout * 1e9)}ns", initial_rto = "{round(timeout * 1e9)}ns", ack_ends_backoff = true'
    found = [float(row["goodput_bytes"]) / size / (0.9 * length) for row in flow(checks, p, trip, length, tcp)]
    checks.mean(f"timeouts of {timeout:.2f} s, {1e3 * trip:.1f} ms, loss {p:.3f}, packets/s", found, expected)


def pftk(checks):
    """Packets per second of Reno with a window that nothing else limits."""
    draw = checks.draw
    p, trip, b = between(draw, 0.001, 0.05), between(draw, 0.01, 0.2), draw.choice([1, 2])
    timeout = draw.uniform(max(0.2, 3.5 * trip), 1)
    expected = rate(p, b, trip, timeout)
    length = 100 / p / expected
    held = "off" if b == 1 else "2 200ms"
    tcp = f'window = "1000MB", delayed_ack = "{held}", byte_counting = false, max_backoff = 64, min_rto = "{round(timeout * 1e9)}ns"'
    rows = flow(checks, p, trip, length, tcp)
    what = f"{1e3 * trip:.1f} ms, loss {p:.4f}, b {b}, timeout {timeout:.2f} s"
    checks.record(f"PFTK {what}, packets/s", [float(row["sent_packets"]) / (0.9 * length) for row in rows], expected)
    # Of a series of doubled timeouts, the first: each follows another with probability p.
    first = [(1 - p) * int(row["timeouts"]) for row in rows]
    shares = [count / (count + int(row["fast_retransmits"])) for count, row in zip(first, rows)]
    checks.record(f"PFTK {what}, share of losses with a timeout", shares, model(p, b)[1])
    checks.record(f"PFTK's process {what}, packets/s", [process(draw, p, b, trip, timeout) for _ in range(checks.seeds)], expected)
