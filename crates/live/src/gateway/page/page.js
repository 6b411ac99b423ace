(() => {
  const HOUR = 3600, ROWS = 16;
  const WAYS = ["up", "down"];
  const mbit = (bytes) => bytes === null ? null : bytes * 8 / 1e6;

  // Without the date, which would overlap the next label under a narrow chart.
  const clock = (at) => new Date(at * 1e3).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });

  // When the gateway started, by the clock of this machine.
  let began = 0;
  let events = [];
  const views = {};

  // Round times on the axis, in seconds.
  const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200];
  const chart = (parent, label, names, quantity, data) => {
    const colours = ["first", "second", "third"];
    const series = names.map((name, at) => ({
      name, colour: `var(--${colours[at]})`, style: at === 1 ? { "stroke-dasharray": "6 3" } : {},
    }));
    const figure = explore.live(parent, { label, quantity, series, text: clock, steps: STEPS });
    figure.data.eventStyle = { stroke: "var(--bad)", "stroke-dasharray": "4 4" };
    figure.set(data, eventTimes());
    return figure;
  };
  // Events are lines on the time axis.
  const eventTimes = () => events.map((event) => began + event.at);

  // A row whose first cell opens a history and whose last one is a share; `plain` cells are in between.
  const makeRow = (body, kind, plain) => {
    const row = document.createElement("tr");
    const button = text(text(row, "td", ""), "button", "");
    button.type = "button";
    button.addEventListener("click", () => showHistory(kind, Number(button.dataset.number)));
    for (let at = 0; at < plain; at++) text(row, "td", "");
    const meter = document.createElement("meter");
    text(row, "td", "").append(meter, document.createElement("span"));
    body.append(row);
    return row;
  };
  const fillRow = (row, { said, label, number, cells, part }) => {
    const [name, ...others] = row.cells;
    const button = name.firstChild, share = others.pop(), meter = share.firstChild;
    // Addresses are broken at their colons, and nowhere else.
    if (button.textContent !== said) button.replaceChildren(...said.split(":").flatMap((part, at) => at === 0 ? [part] : [":", document.createElement("wbr"), part]));
    button.dataset.number = number;
    button.setAttribute("aria-label", `${label}: history`);
    others.forEach((cell, at) => { cell.textContent = cells[at]; });
    meter.value = part;
    meter.setAttribute("aria-label", `${said}: share of the capacity`);
    share.lastChild.textContent = " " + (100 * part).toFixed(1) + " %";
  };
  const partOf = (rate, all) => all > 0 ? Math.min(rate / all, 1) : 0;
  const flowCells = (flow, all) => {
    // All packets of a rule have the name of the rule alone.
    const said = flow.flow === "all" ? flow.rule : flow.flow;
    return {
      said, label: `${said}, rule ${flow.rule}`, number: flow.number, part: partOf(flow.bytes_per_second, all),
      cells: [flow.rule, flow.weight, rateText(flow.bytes_per_second), rateText(flow.entitlement_bytes_per_second)],
    };
  };
  const customerName = (customer) => customer === "" ? "no customer" : customer;
  const customerCells = (own, all) => {
    const said = customerName(own.customer);
    const rates = [own.bytes_per_second, own.plan_bytes_per_second, own.ceiling_bytes_per_second, own.entitlement_bytes_per_second];
    return {
      said, label: `customer ${said}`, number: own.number, part: partOf(own.bytes_per_second, all),
      cells: [own.weight ?? "–", ...rates.map(rateText)],
    };
  };
  const fillTable = (rows, body, kind, all) => {
    while (rows.length < all.length) rows.push(makeRow(body, kind, all[0].cells.length));
    while (rows.length > all.length) rows.pop().remove();
    all.forEach((one, at) => fillRow(rows[at], one));
  };

  const open = (way, history) => {
    const root = byId(way);
    root.append(byId("direction").content.cloneNode(true));
    const find = (selector) => root.querySelector(selector);
    root.querySelector(".scroll").setAttribute("aria-label", `largest flows ${way}`);
    root.querySelector(".of-customers").setAttribute("aria-label", `largest customers ${way}`);
    const past = history.directions[way];
    const at = history.at.map((seconds) => began + seconds);
    const ms = (values) => values.map((value) => value === null ? null : value * 1e3);
    const view = {
      root, find, rows: [], customers: [], last: -1,
      data: {
        rate: [at, past.sent_bytes_per_second.map(mbit), past.rate_bytes_per_second.map(mbit)],
        sojourn: [[...at], ms(past.sojourn_seconds["0.5"]), ms(past.sojourn_seconds["0.95"])],
        drops: [[...at], past.dropped_packets, past.marked_packets],
      },
      counts: null,
    };
    view.plots = {
      rate: chart(find(".rate"), `rate ${way}`, ["sent", "capacity"], "rate, Mbit/s", view.data.rate),
      sojourn: chart(find(".sojourn"), `sojourn ${way}`, ["median", "95 %"], "sojourn, ms", view.data.sojourn),
      drops: chart(find(".drops"), `drops and marks ${way}`, ["dropped", "marked"], "rate, packets/s", view.data.drops),
    };
    views[way] = view;
  };

  const sums = (direction) => {
    const reasons = {};
    let marked = 0;
    for (const rule of Object.values(direction.rules)) {
      marked += rule.marked_packets;
      for (const [reason, count] of Object.entries(rule.dropped_packets)) reasons[reason] = (reasons[reason] ?? 0) + count;
    }
    return { reasons, marked, dropped: Object.values(reasons).reduce((sum, count) => sum + count, 0) };
  };

  const update = (way, stats) => {
    const view = views[way], traffic = stats.traffic[way], direction = stats.directions[way];
    const counts = sums(direction);
    const before = view.counts ?? counts;
    const median = traffic.sojourn_seconds["0.5"], most = traffic.sojourn_seconds["0.95"];
    if (traffic.second !== view.last) {
      view.last = traffic.second;
      view.counts = counts;
      const now = began + stats.uptime_seconds;
      const ms = (value) => value === null ? null : value * 1e3;
      const add = (name, values) => {
        const data = view.data[name];
        [now, ...values].forEach((value, at) => {
          data[at].push(value);
          if (data[at].length > HOUR) data[at].shift();
        });
        view.plots[name].set(data, eventTimes());
      };
      add("rate", [mbit(traffic.sent_bytes_per_second), mbit(direction.rate_bytes_per_second)]);
      add("sojourn", [ms(median), ms(most)]);
      add("drops", [counts.dropped - before.dropped, counts.marked - before.marked]);
    }
    const said = `${rateText(traffic.sent_bytes_per_second)} of ${rateText(direction.rate_bytes_per_second)}`;
    view.find(".now").textContent =
      `${said}; sojourn ${timeText(median)} median, ${timeText(most)} at 95 %; ${direction.backlog_packets} packets wait`;
    view.find(".rate").setAttribute("aria-label", `rate ${way}: ${said}`);
    view.find(".sojourn").setAttribute("aria-label", `sojourn ${way}: ${timeText(median)} median, ${timeText(most)} at 95 %`);
    view.find(".drops").setAttribute("aria-label", `${counts.dropped} dropped and ${counts.marked} marked ${way} since the start`);
    const reasons = Object.entries(counts.reasons).filter(([, count]) => count > 0);
    view.find(".reasons").textContent =
      `Since the start: ${reasons.map(([reason, count]) => `${count} dropped (${reason})`).join(", ") || "0 dropped"}, ${counts.marked} marked`;
    view.find(".flows caption").textContent = `The largest of ${count(traffic.active_flows, "flow")} in the last second`;
    const capacity = direction.rate_bytes_per_second;
    fillTable(view.rows, view.find(".flows tbody"), "flow", traffic.flows.slice(0, ROWS).map((flow) => flowCells(flow, capacity)));
    const customers = traffic.customers.slice(0, ROWS).map((own) => customerCells(own, capacity));
    // The last one stays, so that the page does not jump when all flows are silent for a second.
    view.find(".of-customers").hidden = customers.length === 0 && view.customers.length === 0;
    view.find(".customers caption").textContent = `The largest of ${count(traffic.active_customers, "customer")} in the last second`;
    // Columns without a value take no room: plans have no entitlements, and the others no plans.
    const has = (key) => traffic.customers.some((own) => own[key] !== null);
    const { classList } = view.find(".customers");
    classList.toggle("no-plan", !has("plan_bytes_per_second"));
    classList.toggle("no-entitlement", !has("entitlement_bytes_per_second"));
    fillTable(view.customers, view.find(".customers tbody"), "customer", customers);
  };

  const showEvents = () => {
    const list = byId("event-list");
    const shown = events.slice(-50).reverse();
    const key = JSON.stringify(shown);
    if (list.dataset.key === key) return;
    list.dataset.key = key;
    list.replaceChildren();
    for (const event of shown) {
      const often = event.count > 1 ? ` (${event.count} times)` : "";
      text(list, "li", `${clock(began + event.at)} ${event.kind}: ${event.what.trim().replaceAll("\n", "; ").replaceAll("->", "→")}${often}`);
    }
    byId("no-events").hidden = shown.length > 0;
  };

  const health = (stats) => {
    // The obstacles of /healthz: absent interfaces, and a thread that does not move packets.
    const bad = stats.obstacles;
    const late = stats.lateness_seconds["0.99"];
    const node = byId("health");
    const said = bad.length > 0 ? bad.join(" and ") : "frames pass";
    const all = `${said}; lateness ${timeText(late)} at 99 %`;
    if (node.textContent !== all) node.textContent = all;
    node.className = bad.length > 0 ? "bad" : "good";
    // A screen reader announces changes of health, not each number.
    node.setAttribute("aria-live", bad.length > 0 ? "assertive" : "off");
  };

  const showHistory = async (kind, number) => {
    const dialog = byId("flow");
    byId("flow-rule").textContent = "";
    byId("flow-name").textContent = "History";
    byId("flow-chart").replaceChildren();
    byId("flow-edit").hidden = true;
    dialog.showModal();
    try {
      const hour = await get(`/history?${kind}=${number}`);
      const of = kind === "flow" ? `rule ${hour.rule}` : "customer";
      const said = kind === "customer" ? customerName(hour.customer) : hour.flow === "all" ? hour.rule : hour.flow;
      byId("flow-name").textContent = said;
      byId("flow-rule").textContent = `${hour.direction}, ${of}: rate and entitlement of the last hour, Mbit/s`;
      const edit = byId("flow-edit");
      edit.dataset.section = kind === "flow" ? "rule" : "customer";
      edit.dataset.name = kind === "flow" ? hour.rule : hour.customer;
      edit.hidden = !isControlled || ["", "unmatched", "not IP"].includes(edit.dataset.name) || (kind === "customer" && !areWeighed);
      const data = [hour.at.map((at) => began + at), hour.bytes_per_second.map(mbit), hour.entitlement_bytes_per_second.map(mbit)];
      const parent = byId("flow-chart");
      const plot = chart(parent, `rate and entitlement of ${said} in the last hour`, ["rate", "entitlement"], "rate, Mbit/s", data);
      dialog.addEventListener("close", () => plot.destroy(), { once: true });
    } catch (error) {
      byId("flow-rule").textContent = error.message;
    }
  };

  // Changes: the gateway previews them, and applies them on the same request with the hash of the preview.
  let isControlled = false;
  // Whether weights of customers count.
  let areWeighed = false;
  // In memory only: another tab, or a reload of this page, asks for the token again.
  let token = "";
  let settings = { revision: "", set: {} };
  let shown = null;
  // Until then the page asks more often, to show the effect of a change.
  let hurry = 0;
  const post = async (body) => {
    const headers = { "Content-Type": "application/json", Authorization: `Bearer ${token}` };
    const answer = await fetch("/change", { method: "POST", headers, body: JSON.stringify(body), signal: AbortSignal.timeout(20000) });
    if (answer.status === 401) token = "";
    byId("change-ask").hidden = token !== "";
    if (!answer.ok) throw new Error(await answer.text());
    return answer.json();
  };
  const say = (error, lines) => {
    byId("change-error").textContent = error;
    const list = document.createElement("ul");
    for (const line of lines) text(list, "li", line);
    byId("change-shown").replaceChildren(...(lines.length > 0 ? [list] : []));
    byId("change-apply").hidden = shown === null;
  };
  const forget = () => { shown = null; say("", []); };
  const pick = () => { byId("change-value").value = settings.set[byId("change-key").value] ?? ""; forget(); };
  const loadSettings = async (wanted) => {
    settings = await get("/control");
    const place = (key) => ["up", "down", "rule", "customer"].indexOf(key.split(".")[0]);
    const keys = Object.keys(settings.set).sort((one, other) => place(one) - place(other)).slice(0, 5000);
    const select = byId("change-key");
    select.replaceChildren(...keys.map((key) => new Option(key, key)));
    if (keys.includes(wanted)) select.value = wanted;
    pick();
  };
  const openChange = async (wanted) => {
    forget();
    byId("change-ask").hidden = token !== "";
    byId("change").showModal();
    try { await loadSettings(wanted); } catch (error) { say(error.message, []); }
  };
  const showChange = async () => {
    const key = byId("change-key").value, value = byId("change-value").value.trim();
    if (token === "") token = byId("change-token").value.trim();
    byId("change-token").value = "";
    forget();
    if (token === "") { say("A change needs the token, which is in the file that control_token names.", []); return; }
    const isNumber = key.endsWith(".weight") && value !== "" && Number.isFinite(Number(value));
    const body = { revision: settings.revision, set: { [key]: isNumber ? Number(value) : value } };
    try {
      const answer = await post(body);
      if (answer.confirm !== null) shown = { ...body, confirm: answer.confirm };
      say("", answer.changes.length > 0 ? answer.changes : ["nothing changes"]);
    } catch (error) {
      say(error.message, []);
      // Another client has changed the configuration: the next try starts from the new one.
      try { settings = await get("/control"); } catch { /* The error of the change is shown. */ }
    }
  };
  const applyChange = async () => {
    const body = shown;
    shown = null;
    byId("change-apply").hidden = true;
    try {
      const answer = await post(body);
      hurry = Date.now() + 5000;
      await loadSettings(byId("change-key").value);
      say("", answer.changes.map((line) => `applied: ${line}`));
    } catch (error) {
      say(error.message, []);
    }
    byId("change-close").focus();
  };

  const poll = async () => {
    const stats = await get("/stats.json");
    if (byId("title").textContent !== stats.title) {
      byId("title").textContent = stats.title;
      document.title = `Gateway ${stats.title}`;
    }
    const start = Date.now() / 1e3 - stats.uptime_seconds;
    if (Math.abs(start - began) > 5) {
      // Another gateway, or its first answer: the history starts empty.
      began = start;
      const history = await get("/history");
      for (const way of WAYS) {
        for (const plot of Object.values(views[way]?.plots ?? {})) plot.destroy();
        views[way]?.root.querySelectorAll(":scope > :not(h2)").forEach((node) => node.remove());
        open(way, history);
      }
    }
    events = stats.events;
    isControlled = stats.control.on;
    byId("edit").hidden = !isControlled;
    areWeighed = WAYS.some((way) => stats.traffic[way].customers.some((own) => own.weight !== null));
    for (const way of WAYS) update(way, stats);
    showEvents();
    health(stats);
    // All clients ask in the same part of each second, and the gateway encodes one answer for them.
    const wait = (1300 - stats.uptime_seconds * 1e3 % 1e3) % 1e3;
    return wait < 200 ? wait + 1e3 : wait;
  };
  const round = async () => {
    let wait = 1e3;
    if (!document.hidden) {
      try {
        wait = await poll();
      } catch (error) {
        const node = byId("health");
        node.className = "bad";
        node.setAttribute("aria-live", "assertive");
        node.textContent = `the gateway does not answer: ${error.message}`;
      }
    }
    setTimeout(round, Date.now() < hurry ? 250 : wait);
  };
  byId("flow-close").addEventListener("click", () => byId("flow").close());
  byId("flow-edit").addEventListener("click", (event) => {
    const { section, name } = event.currentTarget.dataset;
    byId("flow").close();
    // Quotes a key where TOML requires it.
    openChange(`${section}.${/^[\w-]+$/.test(name) ? name : JSON.stringify(name)}.weight`);
  });
  byId("edit").addEventListener("click", () => openChange(""));
  byId("change-key").addEventListener("change", pick);
  byId("change-value").addEventListener("input", forget);
  byId("change-form").addEventListener("submit", (event) => { event.preventDefault(); showChange(); });
  byId("change-apply").addEventListener("click", applyChange);
  byId("change-close").addEventListener("click", () => byId("change").close());
  round();
})();
