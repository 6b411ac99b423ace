(() => {
  // Layers of the chart, and the part of a run over which throughputs are averaged.
  const COLOURS = 12, WINDOW = 1 / 100;
  const main = document.querySelector("main"), body = document.querySelector("tbody");
  const percent = (part) => (100 * part).toFixed(1) + " %";
  const secondsText = (seconds) => seconds.toFixed(seconds < 10 ? 2 : 1) + " s";
  const mbit = (kbit) => kbit.map((value) => value === null ? null : value / 1e3);
  let stacked = true;
  // The chosen replication; the last one if none was chosen.
  let chosen = null;
  let shown = null;
  // The point under the pointer.
  let cursor = null;
  let plots = null;
  let built = "";
  const rows = [];
  // The colours of flows by place, kept while they are shown.
  let colours = new Map();

  const colourFlows = (flows) => {
    const places = new Set(flows.slice(0, COLOURS).map((flow) => flow.place));
    colours = new Map([...colours].filter(([place]) => places.has(place)));
    for (const place of [...places].sort((a, b) => a - b)) {
      if (colours.has(place)) continue;
      const taken = new Set(colours.values());
      let free = 0;
      while (taken.has(free)) free++;
      colours.set(place, free);
    }
  };
  const colourOf = (place) => `var(--${colours.has(place) ? "c" + colours.get(place) : "others"})`;

  // Means over the points of a window that ends with each.
  const smooth = (values, wide) => {
    let sum = 0, known = 0;
    const shift = (value, sign) => { if (value !== null) { sum += sign * value; known += sign; } };
    return values.map((value, at) => {
      shift(value, 1);
      if (at >= wide) shift(values[at - wide], -1);
      return value === null || known === 0 ? null : Math.max(sum / known, 0);
    });
  };
  const windowOf = (course) => Math.max(Math.round(WINDOW * course.stop_seconds / course.point_seconds), 1);
  // Throughputs of flows are averaged, since a flow may send a packet only in every other interval.
  const averaged = (course) => {
    const { link } = course, wide = windowOf(course);
    const of = (values) => smooth(mbit(values), wide);
    return { all: of(link.flows_kbit_per_second), flows: link.flows.map((flow) => of(flow.series)) };
  };

  // The flows of the chart, in the order of the scenario, and all others as one.
  const layers = (course) => {
    const { link, means } = course;
    const drawn = link.flows.map((flow, at) => ({ name: flow.flow, place: flow.place, values: means.flows[at] })).slice(0, COLOURS);
    const list = drawn.sort((a, b) => a.place - b.place);
    const left = link.flow_count - list.length;
    // As a line it would be higher than all others.
    if (left > 0 && stacked) {
      const values = means.all.map((sum, at) => list.reduce((rest, flow) => rest - (flow.values[at] ?? 0), sum));
      list.push({ name: `${left} more`, place: null, values: values.map((value) => Math.max(value, 0)) });
    }
    return list;
  };
  const times = (course) => course.link.sent_kbit_per_second.map((_, at) => (at + 1) * course.point_seconds);
  const flowsData = (course, list) =>
    [times(course), ...list.map((flow) => flow.values), ...stacked ? [mbit(course.link.rate_kbit_per_second)] : []];
  const linkData = ({ link }, at) => ({
    rate: [at, mbit(link.sent_kbit_per_second), mbit(link.rate_kbit_per_second)],
    delay: [at, link.delay_ms],
    backlog: [at, link.backlog],
    drops: [at, link.dropped_per_second, link.marked_per_second],
  });

  const build = (course) => {
    for (const figure of Object.values(plots ?? {})) figure.destroy();
    cursor = null;
    const line = (name, colour, dash) => ({ name, colour: `var(--${colour})`, line: true, style: dash ? { "stroke-dasharray": dash } : {} });
    const ends = [0, course.stop_seconds];
    // Lines would be low under it.
    const capacity = stacked ? [{ ...line("capacity", "text", "6 3") }] : [];
    const flows = explore.live(byId("flows-chart"), {
      label: "rates of flows", quantity: "rate, Mbit/s", ends, height: 260, stacked, hasLegend: false,
      series: [...layers(course).map(({ name, place }) => ({ name, colour: colourOf(place) })), ...capacity],
      onMark: (mark) => { cursor = mark?.i ?? null; if (shown?.means) fillTable(shown); },
    });
    const one = (name, label, quantity, series) => explore.live(byId(`${name}-chart`), { label, quantity, series, ends });
    plots = {
      flows,
      rate: one("rate", "rate and capacity", "rate, Mbit/s", [line("sent", "first"), line("capacity", "second", "6 3")]),
      delay: one("delay", "time in the queue", "mean, ms", [line("", "first")]),
      backlog: one("backlog", "packets in the queue", "backlog, packets", [line("", "first")]),
      drops: one("drops", "drops and marks", "rate, packets/s", [line("dropped", "first"), line("marked", "second", "6 3")]),
    };
  };

  const makeRow = () => {
    const row = document.createElement("tr");
    const name = text(row, "td", "");
    const key = text(name, "span", "");
    key.className = "key";
    text(name, "span", "");
    for (let at = 0; at < 4; at++) text(row, "td", "");
    text(row, "td", "").append(document.createElement("meter"), document.createElement("span"));
    body.append(row);
    return row;
  };
  const fillRow = (row, { name, place, rate, share, mean, entitled, meanShare }) => {
    const [first, ...cells] = row.cells;
    first.firstChild.style.background = colourOf(place);
    first.lastChild.textContent = name;
    cells[0].textContent = rateText(rate);
    cells[1].textContent = percent(share);
    cells[2].textContent = rateText(mean);
    cells[3].textContent = rateText(entitled);
    const meter = cells[4].firstChild;
    meter.value = meanShare;
    meter.setAttribute("aria-label", `${name}: share`);
    cells[4].lastChild.textContent = percent(meanShare);
  };
  const fillTable = (course) => {
    const { link, means } = course;
    const sum = (list, key) => list.reduce((all, one) => all + one[key], 0);
    // The values under the pointer, or the last ones.
    const last = means.all.length - 1;
    const at = cursor !== null && cursor < last ? cursor : last;
    const all = (means.all[at] ?? 0) * 125e3;
    const lines = link.flows.map((flow, place) => {
      const rate = (means.flows[place][at] ?? 0) * 125e3;
      return {
        name: flow.flow, place: flow.place, rate, share: all > 0 ? Math.min(rate / all, 1) : 0,
        mean: flow.measured_bytes_per_second, entitled: flow.measured_entitlement_bytes_per_second, meanShare: flow.measured_share,
      };
    });
    const left = link.flow_count - lines.length;
    if (left > 0) {
      const rest = (key) => Math.max(1 - sum(lines, key), 0);
      lines.push({
        name: `${left} more`, place: null, rate: Math.max(all - sum(lines, "rate"), 0), share: all > 0 ? rest("share") : 0,
        mean: Math.max(link.flows_measured_bytes_per_second - sum(lines, "mean"), 0),
        meanShare: link.flows_measured_bytes_per_second > 0 ? rest("meanShare") : 0,
      });
    }
    while (rows.length < lines.length) rows.push(makeRow());
    while (rows.length > lines.length) rows.pop().remove();
    lines.forEach((one, place) => fillRow(rows[place], one));
    byId("when").textContent = at === last ? "rate" : `at ${secondsText((at + 1) * course.point_seconds)}`;
    const largest = left > 0 ? `The largest of ${count(link.flow_count, "flow")}` : count(link.flow_count, "flow");
    document.querySelector("caption").textContent = `${largest}; mean since ${Number(course.measure_from_seconds.toFixed(3))} s`;
  };

  const fillSelect = (select, box, options, value) => {
    const key = JSON.stringify(options);
    if (select.dataset.key !== key) {
      select.dataset.key = key;
      select.replaceChildren(...options.map(([number, name]) => new Option(name, number)));
    }
    if (document.activeElement !== select) select.value = value;
    box.hidden = options.length < 2;
  };

  const showLink = (course) => {
    const { link } = course;
    course.means = averaged(course);
    const list = layers(course);
    const key = JSON.stringify([course.number, course.stop_seconds, link.name, stacked, list.map((flow) => flow.name)]);
    colourFlows(link.flows);
    if (key !== built || plots === null) {
      built = key;
      build(course);
    }
    const data = { flows: flowsData(course, list), ...linkData(course, times(course)) };
    for (const name of Object.keys(data)) plots[name].set(data[name]);
    fillTable(course);
    const wide = windowOf(course) * course.point_seconds;
    byId("window").textContent = `Rate at the receiver, Mbit/s, mean over ${Number(wide.toFixed(3))} s`;
    byId("link-name").textContent = `Link ${link.name}`;
    const now = `${rateText(link.bytes_per_second)} of ${rateText(link.rate_bytes_per_second)}; ` +
      `${count(link.backlog_packets ?? 0, "packet")} in the queue; time in it ${timeText(link.delay_seconds)}`;
    byId("now").textContent = now;
    const reasons = Object.entries(link.dropped_packets).filter(([, packets]) => packets > 0).map(([reason, packets]) => `${packets} dropped (${reason.replace("_", " ")})`);
    if (link.lost_packets > 0) reasons.push(`${link.lost_packets} lost on the wire`);
    const said = `Since the start: ${reasons.join(", ") || "0 dropped"}, ${link.marked_packets} marked`;
    byId("reasons").textContent = said;
    const labels = {
      flows: `rates of ${count(link.flow_count, "flow")} over ${link.name}`, rate: `rate and capacity: ${now}`,
      delay: `time in the queue: ${timeText(link.delay_seconds)}`, backlog: `${link.backlog_packets ?? 0} packets in the queue`, drops: said,
    };
    for (const [name, label] of Object.entries(labels)) byId(`${name}-chart`).setAttribute("aria-label", label);
  };

  const courseName = (course) => `${course.point === "" ? "" : course.point + ", "}seed ${course.seed}${{ cut: ", cut short", late: ", late, run again" }[course.state] ?? ""}`;
  const stateText = (stats, course) => {
    const place = stats.replications > 1 ? `: ${stats.replications_done} of ${stats.replications} runs done` : "";
    if (stats.state === "waiting" || (course === null && stats.state === "running")) return "the run has not begun";
    if (stats.state === "running") return `running${place}`;
    return (stats.state === "ended" ? "ended" : "cut short") + place;
  };
  const show = (stats) => {
    const { course } = stats;
    byId("title").textContent = stats.title;
    document.title = `Apportion ${stats.title}`;
    const node = byId("state");
    const said = stateText(stats, course);
    const detail = course === null ? "" : `; ${courseName(course)}: ${secondsText(course.at_seconds)} of ${secondsText(course.stop_seconds)}`;
    node.textContent = said + detail;
    node.className = stats.state === "cut" ? "bad" : "good";
    // A screen reader announces begin and end, not each number.
    node.setAttribute("aria-live", stats.state === "running" ? "off" : "polite");
    byId("progress").value = course === null ? 0 : Math.min(course.at_seconds / course.stop_seconds, 1);
    shown = course;
    main.hidden = course === null || course.link === null;
    if (course === null) return;
    const last = stats.courses.at(-1).number;
    const options = [["", `the last one (${courseName(stats.courses.at(-1))})`], ...stats.courses.map((one) => [one.number, courseName(one)])];
    fillSelect(byId("course"), byId("course-box"), stats.courses.length > 1 ? options : [], chosen ?? "");
    if (chosen !== null && course.number !== chosen) chosen = null;
    if (course.link === null) {
      node.textContent += "; no link is watched: write `watch = true` in the table of one";
      return;
    }
    const left = course.links_left_out > 0 ? [["", `${course.links_left_out} more are not shown`]] : [];
    fillSelect(byId("link"), byId("link-box"), [...course.links.map((name, at) => [at, name]), ...left], course.links.indexOf(course.link.name));
    showLink(course);
  };

  let timer = null;
  let asked = 0;
  const round = async () => {
    clearTimeout(timer);
    const own = ++asked;
    let wait = 1000;
    if (!document.hidden) {
      try {
        const course = chosen === null ? "" : `course=${chosen}&`;
        const stats = await get(`/stats.json?${course}link=${Math.max(byId("link").selectedIndex, 0)}`);
        if (own === asked) show(stats);
        wait = stats.state === "running" ? 400 : 1000;
      } catch {
        const node = byId("state");
        node.className = "bad";
        node.setAttribute("aria-live", "assertive");
        node.textContent = "apportion has ended; what is shown stays until the next run with a page here";
        // Another process begins to count its replications at one.
        chosen = null;
      }
    }
    if (own === asked) timer = setTimeout(round, wait);
  };
  byId("course").addEventListener("change", (event) => {
    chosen = event.target.value === "" ? null : Number(event.target.value);
    event.target.blur();
    round();
  });
  byId("link").addEventListener("change", (event) => { event.target.blur(); round(); });
  byId("mode").addEventListener("click", (event) => {
    stacked = !stacked;
    event.target.textContent = stacked ? "Show lines" : "Show stacked";
    if (shown !== null && shown.link !== null) showLink(shown);
  });
  document.addEventListener("visibilitychange", () => { if (!document.hidden) round(); });
  round();
})();
