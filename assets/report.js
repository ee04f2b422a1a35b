// A run as a page of its own, which opens offline: the same elements as on the page, with data that does not change.
decodingExplorer.report = (() => {
  const { make } = decodingExplorer;

  function about({ prompt, lanes }) {
    const root = make("header", "about");
    const heads = ["Lane", "Target", "Draft", "Settings", "Ended by"];
    const table = make("table");
    const row = (cells, tag) => {
      const line = make("tr");
      line.append(...cells.map((cell) => make(tag, "", cell)));
      return line;
    };
    table.append(row(heads, "th"), ...lanes.map((cells) => row(cells, "td")));
    const scroller = make("div", "scroller");
    scroller.append(table);
    root.append(make("h1", "", "Decoding Explorer"), make("h2", "", "Prompt"), make("pre", "prompt", prompt), scroller);
    return root;
  }

  return function report(data) {
    document.body.classList.toggle("dark", matchMedia("(prefers-color-scheme: dark)").matches);
    const still = () => {};
    document.querySelector("#about").replaceChildren(about(data.about));
    decodingExplorer.race(document.querySelector("#race"), { value: data.race }, still);
    decodingExplorer.inspector(document.querySelector("#inspector"), { value: data.steps }, still, null, data.look);
    decodingExplorer.overview(document.querySelector("#overview"), { value: data.overview }, still, null, data.look);
  };
})();
