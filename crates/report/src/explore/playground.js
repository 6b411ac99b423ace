// Links that open a scenario of the page in the playground, whose address `main` has.

const { playground } = document.querySelector("main").dataset;

// The address of a scenario, as the playground reads it.
const playable = async (text, seeds) => {
  const deflated = new Blob([text]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(deflated).arrayBuffer());
  const packed = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
  return `${playground}#s=${packed.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}${seeds > 1 ? `&seeds=${seeds}` : ""}`;
};

const addLink = (parent, href, label, content) =>
  element(parent, "a", { class: "playground", href, "aria-label": label, title: label, target: "_blank", rel: "noopener" }, content);

// A league has a scenario for each situation, in which a discipline takes the place of the variable.
const linkSituation = async (section, queues) => {
  // A long text comes in several nodes.
  section.querySelector("pre[data-seeds]").normalize();
  const { previousSibling: before, nextSibling: after, parentNode: { dataset } } = section.querySelector("pre[data-seeds] var");
  for (const { cells: [head] } of [...section.querySelector("table.sortable").tBodies[0].rows]) {
    const of = queues.get(head.textContent);
    if (!of) continue;
    const queue = (dataset.marks && of.marking) || of.queue;
    const text = before.data + queue + (after?.data ?? "");
    // Its sign is in the style: the text of the head is the name of the row, which leads to its figure.
    const link = addLink(head, await playable(text, dataset.seeds), `Open ${head.textContent} in the playground`);
    for (const name of ["click", "keydown"]) link.addEventListener(name, (event) => event.stopPropagation());
  }
};

// Whether the browser has the compression of links.
const deflates = () => {
  try {
    return Boolean(new CompressionStream("deflate-raw"));
  } catch {
    return false;
  }
};

const linkPlayground = async () => {
  for (const place of document.querySelectorAll("[data-opens]")) {
    const scenario = document.getElementById(place.dataset.opens);
    if (!scenario?.dataset.seeds) continue;
    const href = await playable(scenario.textContent, scenario.dataset.seeds);
    place.append(" · ");
    addLink(place, href, "Open in the playground", "Open in the playground");
  }
  const queues = new Map([...document.querySelectorAll("[data-queue]")].map((of) => [of.textContent, of.dataset]));
  for (const section of document.querySelectorAll("section.situation:has(pre[data-seeds])")) await linkSituation(section, queues);
};
