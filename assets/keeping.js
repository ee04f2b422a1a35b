// How the race that is shown can be kept: as a link, as a file of traces, as a report.
decodingExplorer.keeping = (() => {
  const { make, setText, follow } = decodingExplorer;
  const NO_LINK = "This run cannot be put into a link: download its traces instead.";

  function download(text, className) {
    const link = make("a", `keep-button ${className}`, text);
    link.setAttribute("download", "");
    return link;
  }

  function point(link, run, file) {
    if (run) link.href = `runs/${encodeURIComponent(run)}/${file}`;
    else link.removeAttribute("href");
    link.setAttribute("aria-disabled", String(!run));
  }

  return function keeping(element, props, watch) {
    const bar = make("div", "keeping");
    const copy = make("button", "keep-button copy", "Copy link");
    copy.type = "button";
    const traces = download("Download traces", "traces");
    const report = download("Download report", "report");
    const told = make("output", "told");
    told.setAttribute("aria-live", "polite");
    const address = make("input", "address");
    Object.assign(address, { readOnly: true, hidden: true });
    address.setAttribute("aria-label", "Link to this run");
    bar.append(copy, traces, report, told, address);
    element.replaceChildren(bar);
    let query = null;

    copy.addEventListener("click", async () => {
      if (!query) return setText(told, NO_LINK);
      const url = `${location.origin}${location.pathname}?${query}&open=${decodingExplorer.place()}`;
      try {
        await navigator.clipboard.writeText(url);
        address.hidden = true;
        setText(told, "Link copied: it opens this prompt, these lanes and settings, and this step.");
      } catch {
        setText(told, "Copy this link:");
        Object.assign(address, { value: url, hidden: false });
        address.select();
      }
    });
    follow(props, watch, (value) => {
      query = value.query;
      bar.hidden = !value.run;
      const kept = value.kept ? value.run : "";
      point(traces, kept, "traces.json");
      point(report, kept, "report.html");
      setText(told, "");
      address.hidden = true;
    });
  };
})();
