// Where figures are shown. Drawing one takes plotly longer than a step may take, so those of the neighbouring steps are
// drawn ahead, while the browser is idle, and wait unseen behind the one that is shown.
decodingExplorer.stage = (() => {
  const MOST_PLOTS = 6;
  const CONFIG = { displayModeBar: false, showTips: false, doubleClick: false };

  function chosenRanges(change) {
    const ranges = {};
    for (const [key, value] of Object.entries(change)) {
      const [, axis, end] = key.match(/^([xy]axis\d*)\.range\[([01])\]$/) ?? [];
      if (axis) (ranges[axis] ??= [])[Number(end)] = value;
    }
    return ranges;
  }

  // A stage in `box`. `frame()` gives what all layouts share; `redraw()` is called when a reader has changed the zoom, and
  // `pick()` with the `customdata` of a point that was clicked.
  return function stage(box, frame, redraw, pick = () => {}) {
    const plots = new Map(); // drawn plots by key, the one longest unused first
    const spare = []; // plots that show nothing of use any more
    let front = null;
    let zoom = {}; // by axis, the range that a reader chose: it is kept from step to step

    function layoutOf(figure) {
      const layout = structuredClone(figure.layout); // plotly writes into it
      for (const [axis, range] of Object.entries(zoom)) if (layout[axis]) layout[axis].range = range;
      return Object.assign(layout, frame());
    }

    function newPlot() {
      const plot = document.createElement("div");
      plot.className = "plot behind";
      box.append(plot);
      return plot;
    }

    function freePlot() {
      if (spare.length) return spare.pop();
      if (plots.size < MOST_PLOTS) return newPlot();
      const [key, plot] = [...plots].find(([, candidate]) => candidate !== front);
      plots.delete(key);
      return plot;
    }

    function follow(plot) {
      plot.on("plotly_relayout", (change) => {
        const ranges = chosenRanges(change);
        if (Object.keys(ranges).length) zoomTo({ ...zoom, ...ranges });
      });
      plot.on("plotly_doubleclick", () => zoomTo({}));
      plot.on("plotly_click", ({ points }) => points[0]?.customdata && pick(points[0].customdata));
      plot.dataset.followed = true;
    }

    function zoomTo(ranges) {
      zoom = ranges;
      forget();
      redraw();
    }

    function draw(key, figure) {
      const plot = plots.get(key) ?? freePlot();
      const isDrawn = plots.delete(key);
      plots.set(key, plot);
      if (isDrawn) return plot;
      window.Plotly.react(plot, figure.data, layoutOf(figure), CONFIG);
      if (!plot.dataset.followed) follow(plot);
      return plot;
    }

    // Nothing that was drawn is up to date.
    function forget() {
      spare.push(...plots.values());
      plots.clear();
    }

    return {
      forget,
      has: (key) => plots.has(key),
      prepare: draw,
      show(key, figure) {
        const plot = figure && draw(key, figure);
        if (plot !== front) front?.classList.add("behind");
        plot?.classList.remove("behind");
        front = plot;
      },
    };
  };
})();
