// What flows got, by point and group of flows.

/** The table that a flow is of: `bulk.3` is of `bulk`. */
export const group = (flow) => flow.replace(/\.\d+$/, "");

/** The groups of flows in their order, as `[{ name, flows }]` with the number of flows of each. */
export function groups(flows) {
  const found = new Map();
  for (const flow of flows) found.set(group(flow), (found.get(group(flow)) ?? 0) + 1);
  return [...found].map(([name, count]) => ({ name, flows: count }));
}

const absent = (value) => value === null || value === undefined;

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
    const sums = points.get(share.point);
    const name = group(share.flow);
    if (!sums.has(name)) sums.set(name, { flows: 0, got: 0, least: Infinity, most: -Infinity, entitled: 0, entitlements: 0, drops: 0 });
    add(sums.get(name), share);
  }
  return [...points].map(([point, sums]) => {
    const total = [...sums.values()].reduce((all, { got }) => all + got, 0);
    return { point, total, rows: [...sums].map(([name, sum]) => row(name, sum, total)) };
  });
}

function add(sum, { throughput_mbps: got, entitlement_mbps: entitlement, delay_p95_ms: delay, drops }) {
  sum.flows += 1;
  sum.got += got;
  sum.least = Math.min(sum.least, got);
  sum.most = Math.max(sum.most, got);
  sum.drops += drops;
  if (!absent(delay)) sum.delay = Math.max(sum.delay ?? delay, delay);
  if (absent(entitlement)) return;
  sum.entitled += 1;
  sum.entitlements += entitlement;
}

function row(name, { flows, got, least, most, entitled, entitlements, delay, drops }, total) {
  const entitlement = entitled === flows ? entitlements / flows : undefined;
  return { name, flows, mean: got / flows, least, most, entitlement, delay, drops, percent: total > 0 ? (100 * got) / total : 0 };
}
