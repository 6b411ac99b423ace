// Contents: beside the page on wide screens, behind a button on narrow ones.

const contents = () => {
  const heads = [...document.querySelectorAll("main h2, main details.point > summary, main section.situation > h3")];
  if (heads.length < 3) return;
  const nav = document.createElement("nav"), box = document.createElement("details"), title = document.createElement("summary");
  nav.className = "contents";
  nav.setAttribute("aria-label", "Contents");
  title.textContent = "Contents";
  const list = document.createElement("ul");
  const links = new Map(heads.map((head, at) => {
    const target = head.tagName === "SUMMARY" ? head.parentElement : head;
    target.id ||= `part-${at + 1}`;
    const item = document.createElement("li"), link = document.createElement("a");
    link.href = `#${target.id}`;
    link.textContent = head.tagName === "SUMMARY" ? head.textContent : head.firstChild?.textContent ?? "";
    item.className = head.tagName;
    item.append(link);
    list.append(item);
    link.addEventListener("click", (event) => {
      reveal(target);
      if (target.tagName === "DETAILS") target.open = true;
      if (!isWide.matches) box.open = false;
      // In a page within a page an address is that of the outer one.
      if (location.protocol !== "about:") return;
      event.preventDefault();
      target.scrollIntoView();
    });
    return [head, link];
  }));
  box.append(title, list);
  nav.append(box);
  document.body.prepend(nav);
  document.body.classList.add("has-contents");
  const isWide = matchMedia("(min-width: 90rem)");
  const fit = () => { box.open = isWide.matches; };
  isWide.addEventListener("change", fit);
  fit();
  markCurrent(links);
};

// Marks the last head above the middle of the window.
const markCurrent = (links) => {
  let planned = false;
  const mark = () => {
    planned = false;
    const above = [...links.keys()].filter((head) => head.offsetParent !== null && head.getBoundingClientRect().top < innerHeight / 3);
    for (const link of links.values()) link.removeAttribute("aria-current");
    links.get(above.at(-1) ?? [...links.keys()][0])?.setAttribute("aria-current", "true");
  };
  addEventListener("scroll", () => {
    if (!planned) requestAnimationFrame(mark);
    planned = true;
  }, { passive: true });
  mark();
};
