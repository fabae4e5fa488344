// The graph of a model: search, zoom and pan, all of a node with its kernel's source, and the change since another
// report. Nothing on the page needs it.
(() => {
  const make = (name, given = {}, ...inner) => {
    const made = Object.assign(document.createElement(name), given);
    made.append(...inner);
    return made;
  };
  const own = JSON.parse(document.getElementById("graph-data").textContent);
  const ms = (value) => (value >= 1 ? `${value.toPrecision(3)} ms` : `${(value * 1000).toPrecision(3)} µs`);
  const words = (node) => node.dataset.tip ?? node.querySelector("title")?.textContent ?? "";

  const zoomed = (box) => {
    const picture = box.querySelector("svg"), base = picture.viewBox.baseVal.width;
    let zoom = 1;
    const to = (wanted, x = box.clientWidth / 2, y = box.clientHeight / 2) => {
      const next = Math.min(6, Math.max(0.05, wanted)), ratio = next / zoom;
      const left = (box.scrollLeft + x) * ratio - x, top = (box.scrollTop + y) * ratio - y;
      zoom = next;
      Object.assign(picture.style, { width: `${base * zoom}px`, maxWidth: "none" });
      box.scrollLeft = left;
      box.scrollTop = top;
    };
    const fit = () => to((box.clientWidth - 24) / base);
    const fingers = new Map();
    let dragged = false, apart = 0;
    const distance = () => { const [a, b] = [...fingers.values()]; return Math.hypot(a.x - b.x, a.y - b.y); };
    box.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const frame = box.getBoundingClientRect();
      to(zoom * Math.exp(-event.deltaY / 300), event.clientX - frame.left, event.clientY - frame.top);
    }, { passive: false });
    box.addEventListener("pointerdown", (event) => {
      fingers.set(event.pointerId, { x: event.clientX, y: event.clientY });
      dragged = false;
      if (fingers.size === 2) apart = distance();
    });
    addEventListener("pointermove", (event) => {
      const before = fingers.get(event.pointerId);
      if (!before) return;
      const now = { x: event.clientX, y: event.clientY };
      if (event.pointerType === "mouse" && Math.hypot(now.x - before.x, now.y - before.y) > (dragged ? 0 : 4)) {
        dragged = true;
        box.scrollLeft -= now.x - before.x;
        box.scrollTop -= now.y - before.y;
      } else if (event.pointerType === "mouse") return;
      fingers.set(event.pointerId, now);
      if (fingers.size === 2 && apart) { to((zoom * distance()) / apart); apart = distance(); }
    });
    for (const end of ["pointerup", "pointercancel"]) addEventListener(end, (event) => fingers.delete(event.pointerId));
    box.addEventListener("keydown", (event) => {
      const step = { "+": 1.25, "=": 1.25, "-": 0.8 }[event.key];
      if (step) to(zoom * step);
      if (event.key === "0") fit();
    });
    return { in: () => to(zoom * 1.25), out: () => to(zoom * 0.8), fit, whole: () => to(1), dragged: () => dragged };
  };

  const panel = (section) => {
    const shown = make("aside", { className: "about", hidden: true });
    shown.setAttribute("aria-live", "polite");
    const show = (node, facts) => {
      section.querySelector(".node.chosen")?.classList.remove("chosen");
      node.classList.add("chosen");
      const [head, ...lines] = words(node).split("\n");
      const links = facts.kernels.filter((name) => document.getElementById(`kernel-${name}`)).map((name) => {
        const link = make("a", { href: `#kernel-${name}`, textContent: `source of ${name}` });
        link.addEventListener("click", () => { document.getElementById(`kernel-${name}`).open = true; });
        return link;
      });
      const close = make("button", { type: "button", textContent: "close" });
      close.addEventListener("click", () => { shown.hidden = true; node.classList.remove("chosen"); });
      shown.replaceChildren(make("b", { textContent: head }), ...lines.map((line) => make("p", { textContent: line })),
        make("p", { className: "links" }, ...links, close));
      shown.hidden = false;
    };
    return { shown, show };
  };

  const reportIn = async (file) => {
    const text = await file.text();
    if (!text.trimStart().startsWith("{")) {
      const data = new DOMParser().parseFromString(text, "text/html").getElementById("graph-data");
      if (!data) throw new Error("expected a page or a JSON file of litecl report");
      return JSON.parse(data.textContent);
    }
    const made = JSON.parse(text);
    if (!made.runs) throw new Error("expected a page or a JSON file of litecl report");
    return made.runs.map((run) => ({ median: run.latency.median_ms, nodes: run.nodes.map((node) => ({
      place: node.place.join(":"), op: node.op, name: node.outputs[0]?.name ?? "", where: node.where, ms: node.ms, kernels: [] })) }));
  };

  const changes = (section, run, table) => async (file) => {
    table.replaceChildren();
    section.classList.remove("compared");
    let other;
    try { const all = await reportIn(file); other = all[run] ?? all[0]; } catch (error) {
      table.append(make("p", { className: "warn", textContent: `${file.name}: ${error.message}` }));
      return;
    }
    const key = (node) => `${node.op} ${node.name || node.place}`;
    const before = new Map(other.nodes.map((node) => [key(node), node]));
    const pairs = own[run].nodes.map((node) => [node, before.get(key(node))]).filter(([, old]) => old);
    const most = Math.max(...pairs.map(([node, old]) => Math.abs(node.ms - old.ms)), 1e-9);
    for (const [node, old] of pairs) {
      const drawn = section.querySelector(`.node[data-place="${node.place}"]`), change = node.ms - old.ms;
      drawn.style.setProperty("--d", Math.abs(change) / most);
      drawn.classList.toggle("slower", change > 0);
      drawn.classList.toggle("moved", node.where !== old.where);
    }
    if (!pairs.length) {
      table.append(make("p", { className: "warn", textContent: `${file.name}: expected a report of this model, got one without a node of it` }));
      return;
    }
    section.classList.add("compared");
    const rows = pairs.filter(([node, old]) => node.ms || old.ms || node.where !== old.where)
      .sort(([a, b], [c, d]) => Math.abs(c.ms - d.ms) - Math.abs(a.ms - b.ms)).slice(0, 20);
    const cells = ([node, old]) => [node.place.replace(/^0:/, ""), node.op, old.where === node.where ? node.where : `${old.where} → ${node.where}`,
      ms(old.ms), ms(node.ms), node.ms === old.ms ? "0" : `${node.ms > old.ms ? "+" : "−"}${ms(Math.abs(node.ms - old.ms))}`];
    const alone = own[run].nodes.length - pairs.length, gone = other.nodes.length - pairs.length;
    table.append(
      make("p", { className: "lead", textContent: `${file.name}: a median of ${ms(other.median)}; here ${ms(own[run].median)}. ${pairs.length} nodes are in both`
        + `${alone ? `, ${alone} only here` : ""}${gone ? `, ${gone} only there` : ""}. Green nodes take less time here, red ones more. Each report is one measurement: litecl report --before tests for chance.` }),
      make("div", { className: "scroll" }, make("table", {}, make("thead", {}, make("tr", {},
        ...["node", "operator", "where", "there", "here", "change"].map((name) => make("th", { textContent: name })))),
      make("tbody", {}, ...rows.map((pair) => make("tr", {}, ...cells(pair).map((cell) => make("td", { textContent: cell }))))))));
  };

  for (const section of document.querySelectorAll("section.graphs")) {
    const run = Number(section.dataset.run), boxes = [...section.querySelectorAll(".graph")];
    const views = boxes.map(zoomed), { shown, show } = panel(section), table = make("div", { className: "changes" });
    const facts = new Map(own[run].nodes.map((node) => [node.place, node]));
    const nodes = [...section.querySelectorAll(".node")];
    const choose = (node) => show(node, facts.get(node.dataset.place));
    boxes.forEach((box, i) => box.addEventListener("click", (event) => {
      const node = event.target.closest(".node");
      if (node && !views[i].dragged()) choose(node);
    }));
    const find = make("input", { type: "search", placeholder: "find an operator, a tensor, a reason", ariaLabel: "Find nodes" });
    const count = make("span", { className: "dim" });
    let found = [], at = -1;
    find.addEventListener("input", () => {
      const wanted = find.value.toLowerCase().split(/\s+/).filter(Boolean);
      found = wanted.length ? nodes.filter((node) => wanted.every((word) => words(node).toLowerCase().includes(word))) : [];
      at = -1;
      section.classList.toggle("searched", wanted.length > 0);
      for (const node of nodes) node.classList.toggle("found", found.includes(node));
      count.textContent = wanted.length ? `${found.length} of ${nodes.length}` : "";
    });
    find.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || !found.length) return;
      at = (at + (event.shiftKey ? -1 : 1) + found.length) % found.length;
      count.textContent = `${at + 1} of ${found.length}`;
      found[at].scrollIntoView({ block: "nearest", inline: "nearest" });
      const box = found[at].closest(".graph"), frame = box.getBoundingClientRect(), place = found[at].getBoundingClientRect();
      box.scrollLeft += place.left + place.width / 2 - frame.left - frame.width / 2;
      box.scrollTop += place.top + place.height / 2 - frame.top - frame.height / 2;
      choose(found[at]);
    });
    const button = (label, title, act) => {
      const made = make("button", { type: "button", textContent: label, title });
      made.addEventListener("click", () => views.forEach((view) => view[act]()));
      return made;
    };
    const file = make("input", { type: "file", accept: ".json,.html", hidden: true });
    file.addEventListener("change", () => { if (file.files[0]) changes(section, run, table)(file.files[0]); file.value = ""; });
    const compare = make("button", { type: "button", textContent: "compare with a report…" });
    compare.addEventListener("click", () => file.click());
    const tools = make("div", { className: "tools" }, find, count, button("−", "smaller (-)", "out"), button("+", "larger (+)", "in"),
      button("fit", "fit to the page (0)", "fit"), button("1:1", "as drawn", "whole"), compare, file);
    boxes[0].before(tools);
    boxes.at(-1).after(shown, table);
  }
})();
