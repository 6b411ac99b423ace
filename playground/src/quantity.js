// Quantities with units, and the steps of their sliders.

const UNITS = {
  rate: [
    ["bit", 1],
    ["kbit", 1e3],
    ["Mbit", 1e6],
    ["Gbit", 1e9],
    ["Tbit", 1e12],
  ],
  time: [
    ["ns", 1e-9],
    ["us", 1e-6],
    ["ms", 1e-3],
    ["s", 1],
    ["min", 60],
    ["h", 3600],
  ],
  size: [
    ["B", 1],
    ["kB", 1e3],
    ["MB", 1e6],
    ["GB", 1e9],
  ],
  packets: [["p", 1]],
  count: [["", 1]],
};
/** Units that a slider writes; the others are only read. */
const WRITTEN = /^(kbit|Mbit|Gbit|us|ms|s|B|kB|MB|GB|p|)$/;
const BOUNDS = { rate: [1e4, 1e11], time: [1e-6, 3600], size: [1500, 1e9], packets: [1, 100_000], count: [1, 1000] };
const MANTISSAS = [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8];
/** How far a slider reaches below and above the value it starts from. */
const REACH = { rate: 50, time: 50, size: 50, packets: 50, count: 10 };

/** The quantity in TOML `text` (quotes allowed) as `{ family, value }` in bit/s, seconds, bytes, packets or flows. */
export function parse(kind, text) {
  const match = /^\s*["']?\s*([\d._]+(?:e[+-]?\d+)?)\s*([A-Za-z]*)\s*["']?\s*$/.exec(text);
  if (!match) return undefined;
  const [, number, unit] = match;
  const families = kind === "size" ? ["packets", "size"] : [kind];
  for (const family of families) {
    const factor = UNITS[family]?.find(([name]) => name === unit)?.[1];
    if (factor !== undefined) return { family, value: Number(number.replaceAll("_", "")) * factor };
  }
  return undefined;
}

/** A value as a scenario writes it, without quotes: `2.5Mbit`. */
export function format(family, value) {
  const units = UNITS[family].filter(([name]) => WRITTEN.test(name));
  const [name, factor] = units.findLast(([, each]) => value >= each * 0.9999999) ?? units[0];
  return `${Number((value / factor).toPrecision(6))}${name}`;
}

/** Ascending values of a slider around `value`, which is one of them. */
export function steps(family, value) {
  const [least, most] = BOUNDS[family];
  const whole = family === "packets" || family === "count" || family === "size";
  const middle = value || (family === "time" ? 1e-3 : least);
  const [low, high] = [Math.max(least, middle / REACH[family]), Math.min(most, middle * REACH[family])];
  const found = new Set([value]);
  if (family === "time" && value < 1) found.add(0);
  for (let decade = Math.floor(Math.log10(low)); decade <= Math.ceil(Math.log10(high)); decade += 1) {
    for (const mantissa of MANTISSAS) {
      const exact = Number((mantissa * 10 ** decade).toPrecision(6));
      const step = whole ? Math.round(exact) : exact;
      if (step >= low * 0.9999999 && step <= high * 1.0000001) found.add(step);
    }
  }
  return [...found].sort((one, other) => one - other);
}
