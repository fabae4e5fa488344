// Makes the page handier; nothing on it needs this. Tables sort by their headings, titles of pictures show at once and
// to a finger, and what is folded is printed too.
(() => {
  const tip = document.createElement("div");
  tip.id = "tip";
  tip.hidden = true;
  document.body.append(tip);
  const shown = (event) => {
    const part = event.target.closest?.("svg *");
    const owner = part?.closest("g.node") ?? part;
    const title = owner && [...owner.children].find((child) => child.tagName === "title" || child.dataset?.tip);
    const words = owner?.dataset.tip ?? title?.textContent;
    if (title && words) { owner.dataset.tip = words; title.remove(); }
    tip.hidden = !words;
    if (!words) return;
    tip.textContent = words;
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(8, Math.min(event.clientX + 14, innerWidth - box.width - 8))}px`;
    tip.style.top = `${event.clientY + 18 + box.height > innerHeight ? event.clientY - box.height - 12 : event.clientY + 18}px`;
  };
  addEventListener("pointermove", shown);
  addEventListener("pointerdown", shown);
  addEventListener("scroll", () => { tip.hidden = true; }, { capture: true, passive: true });
  const key = (cell) => {
    const data = cell.querySelector("data");
    return data ? Number(data.value) : cell.textContent.trim();
  };
  for (const head of document.querySelectorAll("table.sorts th")) {
    head.dataset.sort = "";
    head.tabIndex = 0;
    head.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      head.click();
    });
    head.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") !== "descending";
      for (const other of head.parentNode.children) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const body = head.closest("table").tBodies[0], column = head.cellIndex;
      const rows = [...body.rows].map((row) => [key(row.cells[column]), row]);
      const order = ([a], [b]) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(b, undefined, { numeric: true }));
      rows.sort((a, b) => (down ? order(b, a) : order(a, b)));
      body.append(...rows.map(([, row]) => row));
    });
  }
  addEventListener("beforeprint", () => { for (const folded of document.querySelectorAll("details:not(.long)")) folded.open = true; });
})();
