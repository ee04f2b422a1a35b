// The lesson: its stops, one at a time. Each shows a recorded run, opens a step of it, and points at a part of the page.
decodingExplorer.lesson = (() => {
  const { make, setText } = decodingExplorer;
  const { isShown, isCalm } = decodingExplorer.parts;
  const PARTS = {
    lanes: "#race .lanes",
    draft: ".inspector .panel.beams",
    verdict: ".inspector .panel.joint",
    next: ".inspector .panel.next",
    "what-if": ".inspector .what-if",
    "log-probability": ".overview .panel.log-probability",
    passes: ".overview .panel.passes",
    "tokens-per-pass": ".overview .panel.tokens-per-pass",
  };
  const LOADING = "The recorded run is on its way …";
  const ROOM = 14; // pixels around the part that is pointed at

  function button(className, text, onClick) {
    const node = make("button", className, text);
    node.type = "button";
    node.addEventListener("click", onClick);
    return node;
  }

  function makeCard(act) {
    const root = make("section", "lesson-card");
    root.hidden = true;
    root.setAttribute("aria-labelledby", "lesson-title");
    const count = make("p", "count");
    const title = make("h2");
    title.id = "lesson-title";
    title.tabIndex = -1;
    const text = make("p", "text-of-stop");
    text.setAttribute("aria-live", "polite");
    const wait = make("p", "wait", LOADING);
    const back = button("back", "Back", () => act.go(-1));
    const next = button("next", "Next", () => act.go(1));
    const close = button("close", "Close", act.close);
    const buttons = make("div", "buttons");
    buttons.append(back, next, close);
    root.append(count, title, text, wait, buttons);
    return { root, count, title, text, wait, back, next };
  }

  function lesson(element, props, watch, trigger) {
    const stops = JSON.parse(props.value);
    let at = 0;
    let part = null; // that is pointed at
    const opener = button("open-lesson", `Learn: a guided walk in ${stops.length} stops`, open);
    const card = makeCard({ go: (by) => (at + by === stops.length ? close() : goTo(at + by)), close });
    element.replaceChildren(opener, card.root);

    function open() {
      card.root.hidden = false;
      opener.setAttribute("aria-expanded", "true");
      goTo(at);
      card.title.focus({ preventScroll: true });
    }

    function close() {
      card.root.hidden = true;
      opener.setAttribute("aria-expanded", "false");
      point(null);
      document.querySelector(".gradio-container").style.paddingBottom = "";
      opener.focus();
    }

    function goTo(index) {
      at = index;
      const stop = stops[at];
      setText(card.count, `Stop ${at + 1} of ${stops.length}`);
      setText(card.title, stop.title);
      setText(card.text, stop.text);
      card.back.disabled = at === 0;
      setText(card.next, at === stops.length - 1 ? "Done" : "Next");
      if (card.back.disabled && document.activeElement === card.back) card.next.focus(); // keys do not reach it there
      card.root.dataset.stop = at;
      point(null);
      card.wait.hidden = false;
      if (isShown(stop.run)) arrive();
      else trigger("select", { example: stop.example });
    }

    // The recorded run is there: its step is opened, and the part pointed at.
    function arrive() {
      const stop = stops[at];
      card.wait.hidden = true;
      decodingExplorer.openStep(stop.lane, stop.step, stop.token);
      requestAnimationFrame(() => point(document.querySelector(PARTS[stop.part])));
    }

    function point(node) {
      part?.classList.remove("pointed-at");
      part = node;
      if (!part) return;
      part.classList.add("pointed-at");
      document.querySelector(".gradio-container").style.paddingBottom = `${card.root.offsetHeight + 2 * ROOM}px`; // so that the last part can be seen too
      const { top, height } = part.getBoundingClientRect();
      const room = window.innerHeight - card.root.offsetHeight - ROOM;
      const above = Math.max(ROOM, (room - height) / 2);
      window.scrollTo({ top: window.scrollY + top - above, behavior: isCalm() ? "instant" : "smooth" });
    }

    card.root.addEventListener("keydown", (event) => {
      if (event.key === "Escape") close();
    });
    document.addEventListener("run-shown", () => {
      if (!card.root.hidden && !card.wait.hidden && isShown(stops[at].run)) arrive();
    });
  }

  return lesson;
})();
