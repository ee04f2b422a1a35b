// What the inspector and the views of the run share.
decodingExplorer.parts = (() => {
  const { make } = decodingExplorer;

  function makeTable(label) {
    const details = make("details");
    const table = make("table");
    const scroller = make("div", "scroller");
    scroller.tabIndex = 0;
    scroller.setAttribute("role", "region");
    scroller.setAttribute("aria-label", label);
    scroller.append(table);
    details.append(make("summary", "", "Numbers"), scroller);
    return { details, table };
  }

  // The table is filled when it is open.
  function showTable({ details, table }, head, rows) {
    details.hidden = !rows.length;
    if (!details.open || !rows.length) return;
    const row = (cells, tag) => {
      const line = make("tr");
      line.append(...cells.map((cell) => make(tag, "", cell)));
      return line;
    };
    const top = row(head, "th");
    top.querySelectorAll("th").forEach((cell) => cell.setAttribute("scope", "col"));
    table.replaceChildren(top, ...rows.map((cells) => row(cells, "td")));
  }

  function theme() {
    return document.querySelector("body.dark, .gradio-container.dark") ? "dark" : "light";
  }

  function onThemeChange(act) {
    let shown = theme();
    new MutationObserver(() => {
      if (theme() === shown) return;
      shown = theme();
      act();
    }).observe(document.body, { attributeFilter: ["class"] });
  }

  // Exchanges the colours of a figure for their partners in the dark theme.
  function recolour(value, exchange, isColour = false) {
    if (typeof value === "string") return isColour ? exchange[value] ?? value : value;
    if (Array.isArray(value)) return value.map((item) => recolour(item, exchange, isColour));
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) => [key, recolour(item, exchange, /color$/.test(key))]),
    );
  }

  // What the layouts of all figures share; a finger must be free to scroll.
  function frame(look, width) {
    const dragmode = matchMedia("(pointer: coarse)").matches ? false : "zoom";
    return { template: look.templates[theme()], width, height: look.height, dragmode };
  }

  // Safari has no idle callbacks.
  const whenIdle = window.requestIdleCallback?.bind(window) ?? ((act) => setTimeout(act, 60));
  const cancelIdle = window.cancelIdleCallback?.bind(window) ?? clearTimeout;

  // Which run the parts of the page show, by their names; others are told when one shows another.
  const shown = new Map();

  function tellShown(name, run) {
    shown.set(name, run);
    document.dispatchEvent(new CustomEvent("run-shown"));
  }

  function isShown(run) {
    return [...shown.values()].every((other) => other === run);
  }

  function isCalm() {
    return matchMedia("(prefers-reduced-motion: reduce)").matches;
  }

  function bringIntoView(node, block = "nearest") {
    node.scrollIntoView({ block, behavior: isCalm() ? "instant" : "smooth" });
  }

  return {
    makeTable, showTable, theme, onThemeChange, recolour, frame, whenIdle, cancelIdle, tellShown, isShown, isCalm,
    bringIntoView,
  };
})();
