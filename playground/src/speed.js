// How long runs take on this machine, learnt from earlier ones.

/** Packet-hops per second before anything has been measured: a slow telephone. */
const FIRST = 1.5e6;
const KEY = "apportion-hops-per-second";
/** Runs with fewer packet-hops say more about their start than about speed. */
const LEAST = 100_000;

let speed = FIRST;
try {
  speed = Number(localStorage.getItem(KEY)) || FIRST;
} catch {
  // Storage may be forbidden, as for files in some browsers: each page measures anew.
}

/** Seconds that a run of so many packet-hops takes. */
export const seconds = (hops) => hops / speed;

/** Learns from a run. */
export function learn(hops, took) {
  if (hops < LEAST || took <= 0) return;
  speed = speed === FIRST ? hops / took : 0.7 * speed + 0.3 * (hops / took);
  try {
    localStorage.setItem(KEY, String(Math.round(speed)));
  } catch {
    // As above.
  }
}
