"""CUBIC's window after one loss, against RFC 9438. `check` calls it.

One flow (profile `rfc`) over a link that is never full loses one packet, drawn after slow start. From the first
acknowledgement after recovery on, with R the round trip, the RFC gives the window in segments:

    W_cubic(t) = C (t - K)^3 + W_max,  K = cbrt((W_max - w) / C),  w = beta W_max       sections 4.1, 4.2, 4.6
    W_est(t)   = w + alpha t/R,  alpha = 3 (1 - beta)/(1 + beta), and 1 from W_max on   section 4.3
    W(t)       = the larger of the two

Recovery lasts a round trip, and the next acknowledgement comes within another one.

The sender aims at W_cubic(t + R), and a round trip of acknowledgements takes it all but (1 - 1/W)^W = 1/e of the way. So a
window that grows by s in a round trip is s e/(e - 1) = 1.58 s behind its aim before them and .58 s after: between
W(t) - .58 s and W(t) + .42 s. In the first round trip it may grow with W_est alone, which grows faster than W_cubic while many
acknowledgements come at once: then it is s behind, and .74 s a round trip later. W_est, too, grows in steps, of a round trip
each. Therefore each sample of the window must lie between W(t - R) and W(t + R), where R includes one time between samples. Two
things are known to whole segments only:

- W_max is the cut window over beta, and beta applies to what was outstanding, up to a segment less than the window. With the
  fraction of a segment by which the window is ahead of what it can send, this is ROUNDING.
- A round trip acknowledges W - 2 segments at least: whole ones, and those of the window before it grew. So W_est grows by
  alpha (1 - 2/W) to alpha in a round trip.
"""

import math

import common

C, BETA = 0.4, 0.7
# In segments, see above.
ROUNDING = 2
# In a round trip.
SAMPLES = 10


def cubic(checks):
    """The cut, recovery, and every sample of the window from there to 2 K later."""
    draw = checks.draw
    threshold, trip = round(math.exp(draw.uniform(math.log(50), math.log(2000)))), math.exp(draw.uniform(math.log(0.01), math.log(0.2)))
    size, held = draw.randint(200, 1460), draw.choice(["off", "2 200ms"])
    rate = round(8 * (size + 40) * 2 * threshold / trip * draw.uniform(4, 20))
    lost = round(threshold * draw.uniform(3.5, 6))
    tcp = f'profile = "rfc", algorithm = "{"newreno" if checks.wrong == "algorithm" else "cubic"}", delayed_ack = "{held}"'
    # Up to the end of recovery are at most 40 round trips; K belongs to a window a little above the threshold.
    length = 40 * trip + 2.2 * period(threshold)
    text = f"""stop = "{round(length * 1e9)}ns"
sample = "{round(trip / SAMPLES * 1e9)}ns"
link.l = {{ from = "a", to = "b", rate = "{rate}bit", delay = "{round(trip / 2 * 1e9)}ns", queue = {{ kind = "fifo", limit = "100000p" }}, lost = [{{ flow = "f", packets = [{lost}] }}] }}
flow.f = {{ from = "a", to = "b", tcp = {{ {tcp}, segment = "{size}B", window = "1000MB", initial_ssthresh = "{threshold}p" }} }}
"""
    out = checks.run(text, 1)
    windows = [float(row["window_segments"]) for row in common.read_csv(checks.export(out, "series")) if row["kind"] == "flow"]
    compare(checks, f"CUBIC {1e3 * trip:.1f} ms, segments of {size} B, delayed ACKs {held}", windows, trip)


def compare(checks, what, windows, trip):
    """The samples of a window that falls once."""
    cut = next(n for n in range(1, len(windows)) if windows[n] < windows[n - 1])
    before, after = windows[cut - 1], windows[cut]
    beta = 0.75 if checks.wrong == "beta" else BETA
    most = ROUNDING + before - windows[cut - SAMPLES]
    checks.bound(f"{what}, {before:.0f} segments cut to {after:.0f}, from beta times the window", abs(after - beta * before), most, "segments")
    start = next((n for n in range(cut, len(windows)) if windows[n] > after), len(windows))
    checks.bound(f"{what}, recovery", (start - cut) / SAMPLES, 2 + 2 / SAMPLES, "round trips")

    c = 1.25 * C if checks.wrong == "C" else C
    alpha = 1 if checks.wrong == "alpha" else 3 * (1 - BETA) / (1 + BETA)
    least = (1 - 2 / after) / trip
    high, low = rfc9438(after, c, alpha / trip, 1 / trip), rfc9438(after, c, alpha * least, least)
    k, slack = period(after / BETA), trip * (1 + 1 / SAMPLES)
    samples = [(n * trip / SAMPLES, window) for n, window in enumerate(windows[start:])]
    beyond = max(max(window - high(t + slack), low(max(t - slack, 0)) - window) for t, window in samples if t < 2 * k)
    friendly = "Reno-friendly" if high(k) > after / BETA + 1 else "cubic"
    checks.bound(f"{what}, W_max {after / BETA:.0f}, {friendly} at K {k:.2f} s, beyond the curve", beyond, ROUNDING, "segments")


def period(w_max, c=C):
    """K, in seconds."""
    return ((1 - BETA) * w_max / c) ** (1 / 3)


def rfc9438(after, c, alpha, later):
    """W(t) from the cut window; `alpha` and `later` are the growth of W_est per second, below and above W_max."""
    w_max = after / BETA
    k, reached = period(w_max, c), (w_max - after) / alpha

    def window(t):
        friendly = after + alpha * t if t < reached else w_max + later * (t - reached)
        return max(c * (t - k) ** 3 + w_max, friendly)

    return window
