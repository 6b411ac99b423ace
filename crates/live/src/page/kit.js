const byId = (id) => document.getElementById(id);
const rateText = (bytes) => {
  if (bytes === null || bytes === undefined) return "–";
  const bits = bytes * 8;
  return bits >= 1e9 ? (bits / 1e9).toFixed(2) + " Gbit/s"
    : bits >= 1e6 ? (bits / 1e6).toFixed(2) + " Mbit/s" : (bits / 1e3).toFixed(1) + " kbit/s";
};
const count = (number, what) => `${number} ${what}${number === 1 ? "" : "s"}`;
const timeText = (seconds) =>
  seconds === null || seconds === undefined ? "–" : (seconds * 1e3).toFixed(2) + " ms";
const text = (parent, tag, content) => {
  const node = document.createElement(tag);
  node.textContent = content;
  parent.append(node);
  return node;
};
const get = async (path) => {
  const answer = await fetch(path, { cache: "no-store", signal: AbortSignal.timeout(5000) });
  if (!answer.ok) throw new Error(await answer.text());
  return answer.json();
};
