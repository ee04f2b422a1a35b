// The views of the whole run: one figure for all lanes each, with its numbers. They come as JSON text when a race is over.
decodingExplorer.overview = (() => {
  const { make, setText, follow } = decodingExplorer;
  const { makeTable, showTable, theme, onThemeChange, recolour, frame, whenIdle, cancelIdle, tellShown } =
    decodingExplorer.parts;
  const SVG = "http://www.w3.org/2000/svg";
  const HINT = "Click a point to open its step.";
  const EMPTY = "No lane drafted anything.";
  const DASHES = { solid: "", dash: "8 5", dot: "2.5 3.5", dashdot: "8 4 2.5 4" };

  function drawn(tag, attributes) {
    const node = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    return node;
  }

  // A lane's line and symbol, as the figures draw them.
  function makeSign(index, dash) {
    const sign = drawn("svg", { class: `sign lane-${index}`, width: 44, height: 14, "aria-hidden": "true" });
    const marks = [
      { tag: "circle", cx: 22, cy: 7, r: 4.5 },
      { tag: "rect", x: 17.5, y: 2.5, width: 9, height: 9 },
      { tag: "path", d: "M22 1L28 7L22 13L16 7Z" },
      { tag: "path", d: "M22 1.5L27.5 11.5L16.5 11.5Z" },
    ];
    const { tag, ...shape } = marks[index % marks.length];
    sign.append(drawn("path", { d: "M0 7H44", "stroke-dasharray": DASHES[dash] }), drawn(tag, { class: "mark", ...shape }));
    return sign;
  }

  function makeLegend(lanes) {
    return lanes.map(({ title, dash }, index) => {
      const item = make("li");
      item.append(makeSign(index, dash), make("span", "", title));
      return item;
    });
  }

  function makePanel({ name, title }) {
    const root = make("section", `panel ${name}`);
    const area = make("div", "area");
    const box = make("div", "stage");
    box.setAttribute("role", "img");
    box.setAttribute("aria-label", `${title}, all lanes. Its numbers are in the table.`);
    const empty = make("p", "empty", EMPTY);
    area.append(box, empty);
    const note = make("p", "note");
    const { details, table } = makeTable(`${title}: numbers`);
    root.append(make("h3", "", title), area, note, details);
    return { root, box, empty, note, details, table, width: 0 };
  }

  function overview(element, props, watch, trigger, look) {
    const root = make("section", "board overview");
    root.hidden = true;
    root.setAttribute("aria-labelledby", "overview-title");
    const heading = make("h2", "", "The whole run");
    heading.id = "overview-title";
    const legend = make("ul", "lanes-key");
    const row = make("div", "panels");
    root.append(heading, legend, make("p", "hint", HINT), row);
    element.replaceChildren(root);

    const panels = new Map(); // by name
    let run = "";
    let views = [];
    let idle = 0;

    function panelOf(view) {
      if (panels.has(view.name)) return panels.get(view.name);
      const panel = makePanel(view);
      const redraw = () => draw(panel);
      const open = ([lane, step, token]) => decodingExplorer.openStep?.(lane, step, token);
      panel.stage = decodingExplorer.stage(panel.box, () => frame(look, panel.width), redraw, open);
      panel.details.addEventListener("toggle", () => showNumbers(panel));
      panels.set(view.name, panel);
      row.append(panel.root);
      return panel;
    }

    function showNumbers(panel) {
      showTable(panel, panel.view.head, panel.view.rows);
    }

    function draw(panel) {
      const { figure } = panel.view;
      panel.empty.hidden = Boolean(figure);
      panel.width = panel.box.clientWidth;
      if (!window.Plotly || !panel.width) return;
      panel.stage.show("", figure && theme() === "dark" ? recolour(figure, look.exchange) : figure);
    }

    // One figure each time the browser has nothing else to do.
    function drawSoon(waiting = [...panels.values()]) {
      cancelIdle(idle);
      const [panel, ...others] = waiting;
      if (!panel || root.hidden) return;
      idle = whenIdle(() => {
        draw(panel);
        drawSoon(others);
      });
    }

    function forget() {
      panels.forEach((panel) => panel.stage.forget());
      drawSoon();
    }

    function take(value) {
      if (value.run === run) return;
      run = value.run;
      root.hidden = !value.text;
      if (value.text) show(value);
      tellShown("overview", run);
    }

    function show(value) {
      const { lanes, panels: all } = JSON.parse(value.text);
      views = all;
      legend.replaceChildren(...makeLegend(lanes));
      for (const view of views) {
        const panel = panelOf(view);
        panel.view = view;
        setText(panel.note, view.note);
        showNumbers(panel);
      }
      forget();
    }

    onThemeChange(forget);
    new ResizeObserver(() => {
      if ([...panels.values()].some((panel) => panel.box.clientWidth !== panel.width)) forget();
    }).observe(row);
    document.querySelector("#plotly-script")?.addEventListener("load", () => drawSoon());
    follow(props, watch, take);
  }

  return overview;
})();
