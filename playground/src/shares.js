// What flows got, by point and group of flows.

/** The table that a flow is of: `bulk.3` is of `bulk`. */
export const group = (flow) => flow.replace(/\.\d+$/, "");

/** The groups of flows in their order, as `[{ name, flows }]` with the number of flows of each. */
export function groups(flows) {
  const found = new Map();
  for (const flow of flows) found.set(group(flow), (found.get(group(flow)) ?? 0) + 1);
  return [...found].map(([name, count]) => ({ name, flows: count }));
}

const most = (values) => (values.length ? Math.max(...values) : undefined);
const total = (values) => values.reduce((sum, each) => sum + each, 0);

/**
 * Rows of the engine's `shares` by point, as `[{ point, total, rows }]`.
 *
 * A row is a group: throughput and entitlement of a flow in the mean, the least and the most, Mb/s; the longest 95th
 * percentile of delay, ms; drops of all; and `percent`, the group's part of all that flows got.
 */
export function byPoint(shares) {
  const points = new Map();
  for (const share of shares) {
    if (!points.has(share.point)) points.set(share.point, new Map());
    const rows = points.get(share.point);
    const name = group(share.flow);
    rows.set(name, [...(rows.get(name) ?? []), share]);
  }
  return [...points].map(([point, rows]) => {
    const all = total([...rows.values()].flat().map((each) => each.throughput_mbps));
    return { point, total: all, rows: [...rows].map(([name, flows]) => row(name, flows, all)) };
  });
}

function row(name, flows, all) {
  const got = flows.map((each) => each.throughput_mbps);
  const entitlements = flows.map((each) => each.entitlement_mbps).filter((each) => each !== null && each !== undefined);
  return {
    name,
    flows: flows.length,
    mean: total(got) / flows.length,
    least: Math.min(...got),
    most: Math.max(...got),
    entitlement: entitlements.length === flows.length ? total(entitlements) / flows.length : undefined,
    delay: most(flows.map((each) => each.delay_p95_ms).filter((each) => each !== null && each !== undefined)),
    drops: total(flows.map((each) => each.drops)),
    percent: all > 0 ? (100 * total(got)) / all : 0,
  };
}
