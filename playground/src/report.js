// The report in a frame: the next one is prepared behind the present one, which keeps place and open sections.
import { h } from "./dom.js";

/** The name of a section that opens and closes, with those around it. */
function name(details) {
  const around = details.parentElement?.closest("details");
  return (around ? `${name(around)}\n` : "") + (details.querySelector("summary")?.textContent ?? "");
}

/** Two frames in `panel`, one of which is seen. */
export class Report {
  #panel;
  #seen;
  #next;

  constructor(panel) {
    this.#panel = panel;
  }

  /** Shows the page `html`; without its scripts if it was made with a policy, which could have written it. */
  show(html, own) {
    this.#next?.remove();
    const frame = h("iframe", { title: "Report", class: "behind", sandbox: own && "allow-same-origin" });
    this.#next = frame;
    frame.addEventListener("load", () => this.#swap(frame), { once: true });
    frame.srcdoc = html;
    this.#panel.append(frame);
  }

  #swap(frame) {
    if (frame !== this.#next) return;
    const before = this.#seen?.contentDocument;
    if (before) {
      const open = new Map([...before.querySelectorAll("details")].map((each) => [name(each), each.open]));
      for (const each of frame.contentDocument.querySelectorAll("details")) each.open = open.get(name(each)) ?? each.open;
      frame.contentWindow.scrollTo(this.#seen.contentWindow.scrollX, this.#seen.contentWindow.scrollY);
    }
    frame.classList.remove("behind");
    this.#seen?.remove();
    this.#seen = frame;
    this.#next = undefined;
  }
}
