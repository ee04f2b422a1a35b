// The most probable block there is, searched for on demand: a button in the inspector, and where its answers arrive.
decodingExplorer.bestBlocks = (() => {
  const { make, setText } = decodingExplorer;
  const ASKED = "Waiting for the compute to be free …";
  const answers = new Map();
  const listeners = new Set();
  const keyOf = ({ run, lane, step }) => JSON.stringify([run, lane, step]);

  // The element that the server answers to; the inspector shows what it says.
  decodingExplorer.bestBlock = (element, props, watch) => {
    decodingExplorer.follow(props, watch, (value) => {
      if (!value.run) return;
      answers.set(keyOf(value), { state: value.state, text: value.text });
      listeners.forEach((draw) => draw());
    });
  };

  // The button, and what is known about the step that is open.
  function makeSearch(ask, redraw) {
    const box = make("div", "best-block");
    const button = make("button", "branch", "Find the best block there is");
    button.type = "button";
    const answer = make("p", "note");
    answer.setAttribute("aria-live", "polite");
    box.append(button, answer);
    let shown = null;
    button.addEventListener("click", () => {
      answers.set(keyOf(shown), { state: "busy", text: ASKED });
      ask(shown);
      redraw();
    });
    listeners.add(redraw);

    function show(place, isOffered) {
      shown = place;
      const known = answers.get(keyOf(place));
      box.hidden = !isOffered;
      button.hidden = known?.state === "done";
      button.disabled = known?.state === "busy";
      answer.hidden = !known;
      setText(answer, known?.text ?? "");
    }

    return { box, show };
  }

  return { makeSearch };
})();
