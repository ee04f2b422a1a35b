// The inspector: any step of any lane, with its words, figures and tables. Steps come as JSON text, and are read when opened.
decodingExplorer.inspector = (() => {
  const { make, setText } = decodingExplorer;
  const { makeTable, showTable, theme, onThemeChange, recolour, whenIdle, cancelIdle, tellShown, bringIntoView } =
    decodingExplorer.parts;
  const PLAY_EVERY = 900; // milliseconds
  const UNTOUCHED = "Move τ to see which prefix this step would have kept.";
  const AHEAD = [1, 2, -1]; // steps to draw ahead, in the direction of the last move
  const PANELS = {
    beams: { title: "Draft", empty: "Nothing was drafted in this step." },
    joint: { title: "Verdict", empty: "Nothing was judged in this step." },
    next: { title: "Next token", empty: "This step wrote no token." },
  };
  const LEGENDS = {
    chain: [["dot kept", "kept"], ["ring dropped", "dropped"], ["", "area: probability q"]],
    beams: [
      ["dot kept", "kept"], ["ring dropped", "chosen, dropped"], ["ring other", "other beam"], ["dots", "died"],
      ["", "area: q"],
    ],
    mtad: [
      ["stroke target", "log P"], ["dashes draft", "log Q"], ["dot kept", "P/Q above τ"], ["cross", "not above τ"],
      ["dashes ink", "τ"],
    ],
    tree: [
      ["stroke target", "log P"], ["dashes draft", "log max Q"], ["dot kept", "P/max Q above τ"], ["cross", "not above τ"],
      ["dashes ink", "τ"],
    ],
    mtjd: [["block kept", "written"], ["block target", "found"], ["dashes ink", "bound on all but the proven"]],
    found: [["dot kept", "written"], ["ring other", "other blocks found"], ["", "area: probability p"]],
    speculative: [
      ["stroke target", "log P"], ["dashes draft", "log Q"], ["block", "min(1, p/q)"], ["dot kept", "draw u below: kept"],
      ["cross", "u not below: refused"],
    ],
    typical: [
      ["stroke target", "log P"], ["dashes draft", "log Q"], ["block", "p̃"], ["dot kept", "asked, below p̃"],
      ["cross", "asked, not below p̃"],
    ],
    next: [["block target", "p̃ target"], ["block draft", "q̃ draft"], ["tick", "before the warp"], ["taken", "token taken"]],
    resampled: [
      ["block target", "p̃ target"], ["block draft", "q̃ draft"], ["frame", "residual, resampled from"],
      ["tick", "before the warp"], ["taken", "token taken"],
    ],
  };
  const DRAFT_LEGENDS = { speculative: LEGENDS.chain, typical: LEGENDS.chain, mtad: LEGENDS.beams, tree: LEGENDS.beams, mtjd: LEGENDS.found };
  const HEADS = {
    tree: ["depth", "token", "q", "p", "max Q", "P", "P/max Q", "τ", "outcome"],
    mtjd: ["rank", "block", "P", "drawn with", "state"],
    mtad: ["depth", "token", "q", "p", "Q", "P", "P/Q", "τ", "outcome"],
    speculative: ["depth", "token", "q", "p", "Q", "P", "p/q", "u", "outcome"],
    typical: ["depth", "token", "q", "p", "Q", "P", "asked", "outcome"],
    next: ["token", "p̃", "q̃", "p", "q"],
  };

  function button(className, text, label, onClick) {
    const node = make("button", className, text);
    node.type = "button";
    if (label) node.setAttribute("aria-label", label);
    node.addEventListener("click", onClick);
    return node;
  }

  function slider(label, onInput) {
    const node = make("input");
    node.type = "range";
    node.setAttribute("aria-label", label);
    node.addEventListener("input", onInput);
    return node;
  }

  // The rule of MTAD, on [log P, log Q] of every prefix; null is −∞.
  function keptPrefix(joints, threshold) {
    const log = (value) => value ?? -Infinity;
    return joints.findLastIndex(([p, q]) => log(p) - log(q) > Math.log(threshold)) + 1;
  }

  function tokensOf(step, threshold) {
    const kept = keptPrefix(step.joints, threshold);
    return kept + (step.ends[kept - 1] ? 0 : 1); // nothing comes behind the end of the text
  }

  function mean(values) {
    return values.reduce((sum, value) => sum + value, 0) / values.length;
  }

  function count(number, noun) {
    return `${number} ${noun}${number === 1 ? "" : "s"}`;
  }

  // Whether a key belongs to what has the focus, rather than to the inspector.
  function isBusyElsewhere(event) {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return true;
    const at = event.target instanceof Element ? event.target : document.body;
    if (at.closest("input, textarea, select, [contenteditable='true'], [role='slider'], [role='listbox']")) return true;
    if (event.key === " ") return Boolean(at.closest("button, summary, a, [tabindex]"));
    return ["Home", "End"].includes(event.key) && Boolean(at.closest("[role='region']"));
  }

  function makePanel(name) {
    const root = make("section", `panel ${name}`);
    const heading = make("h3", "", PANELS[name].title);
    const key = make("ul", "key");
    const area = make("div", "area");
    const figure = make("div", "stage");
    figure.setAttribute("role", "img");
    const empty = make("p", "empty", PANELS[name].empty);
    area.append(figure, empty);
    const { details, table } = makeTable(`${PANELS[name].title}: numbers`);
    const note = make("p", "note");
    root.append(heading, key, area, note, details);
    return { root, heading, key, figure, empty, note, details, table, legend: null };
  }

  function showLegend(panel, entries) {
    if (panel.legend === entries) return;
    panel.legend = entries;
    panel.key.replaceChildren(
      ...entries.map(([sign, meaning]) => {
        const item = make("li");
        const mark = make("span", `sign ${sign}`);
        mark.setAttribute("aria-hidden", "true");
        if (sign) item.append(mark);
        item.append(meaning);
        return item;
      }),
    );
  }

  function makeControls(act) {
    const bar = make("div", "controls");
    const lanes = make("div", "chooser");
    lanes.setAttribute("role", "group");
    lanes.setAttribute("aria-label", "Lane");
    const back = button("move", "◀", "Step back", () => act.move(-1));
    const forth = button("move", "▶", "Step forward", () => act.move(1));
    const where = make("output", "where");
    const scrubber = slider("Step", () => act.go(scrubber.valueAsNumber - 1));
    scrubber.min = 1;
    const play = button("play", "Play", "", act.play);
    const steps = make("div", "steps");
    steps.append(back, where, forth, scrubber, play);
    bar.append(lanes, steps, make("p", "hint", "← → Home End, space plays; click a token above to open its step."));
    return { bar, lanes, back, forth, where, scrubber, play };
  }

  function makeWhatIf(act) {
    const box = make("div", "what-if");
    const label = make("label");
    const range = slider("What if τ were", () => act.suppose(range.valueAsNumber));
    Object.assign(range, { min: 0.01, max: 1, step: 0.01 });
    const value = make("output", "value");
    label.append("What if τ = ", value, range);
    const answer = make("p", "answer");
    answer.setAttribute("aria-live", "polite");
    box.append(label, answer);
    return { box, range, value, answer };
  }

  function inspector(element, props, watch, trigger, look) {
    let toOpen = new URLSearchParams(location.search).get("open"); // the step that a link names
    const root = make("section", "board inspector");
    root.hidden = true;
    root.setAttribute("aria-labelledby", "inspector-title");
    const heading = make("h2", "", "Step by step");
    heading.id = "inspector-title";
    const words = make("p", "words");
    words.setAttribute("aria-live", "polite");
    const panels = Object.fromEntries(Object.keys(PANELS).map((name) => [name, makePanel(name)]));
    const chooser = make("select");
    chooser.setAttribute("aria-label", "Token of this step");
    panels.next.heading.after(chooser);
    const branches = make("div", "branches");
    branches.setAttribute("role", "group");
    branches.setAttribute("aria-label", "Branch: go on from here with another token");
    panels.next.details.after(branches);
    const search = decodingExplorer.bestBlocks.makeSearch((place) => trigger("submit", place), drawSoon);
    panels.joint.details.after(search.box);

    const state = { run: "", lane: 0, step: 0, token: null, threshold: null, timer: null, ahead: 0 };
    let width = 0; // of a figure
    const picks = { next: ([token]) => branchWith(token) };
    for (const [name, panel] of Object.entries(panels)) {
      panel.stage = decodingExplorer.stage(panel.figure, frame, drawSoon, picks[name]);
    }
    let data = { run: "", lanes: [] };
    let read = []; // by lane: its steps as far as they were opened
    let waiting = false;
    let idle = 0;

    const lane = () => data.lanes[state.lane];
    const last = () => lane().steps.length - 1;
    const threshold = () => state.threshold ?? lane().threshold;

    function stepAt(index) {
      const steps = (read[state.lane] ??= []);
      if (!steps[index]) {
        const step = JSON.parse(lane().steps[index]);
        steps[index] = theme() === "dark" ? recolour(step, look.exchange) : step;
      }
      return steps[index];
    }

    function stop() {
      clearInterval(state.timer);
      state.timer = null;
    }

    const act = {
      go(index) {
        stop();
        act.open(state.lane, index);
      },
      move: (by) => act.go(state.step + by),
      open(laneIndex, index, token = null) {
        state.lane = laneIndex;
        state.ahead = index < state.step ? -1 : 1;
        state.step = Math.max(0, Math.min(index, last()));
        state.token = token;
        drawSoon();
      },
      choose(laneIndex) {
        stop();
        state.threshold = null;
        act.open(laneIndex, state.lane === laneIndex ? state.step : 0);
      },
      suppose(value) {
        state.threshold = value;
        drawSoon();
      },
      play() {
        if (state.timer) {
          stop();
        } else {
          if (state.step === last()) state.step = 0;
          state.timer = setInterval(() => {
            if (state.step < last()) act.open(state.lane, state.step + 1);
            if (state.step >= last()) stop();
          }, PLAY_EVERY);
        }
        drawSoon();
      },
    };
    const controls = makeControls(act);
    const whatIf = makeWhatIf(act);
    const row = make("div", "panels");
    row.append(...Object.values(panels).map((panel) => panel.root));
    root.append(heading, controls.bar, words, whatIf.box, row);
    element.replaceChildren(root);

    // However fast keys repeat, the step is drawn once a frame.
    function drawSoon() {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => {
        waiting = false;
        draw();
      });
    }

    function draw() {
      if (!lane()?.steps.length) return;
      const step = stepAt(state.step);
      drawControls();
      setText(words, step.words);
      drawWhatIf(step);
      highlight();
      scrollLane();
      drawPanels(step);
      root.dataset.lane = state.lane;
      root.dataset.step = state.step;
      if (state.ahead) drawAheadSoon();
    }

    function drawControls() {
      if (controls.lanes.childElementCount !== data.lanes.length || controls.lanes.dataset.run !== data.run) {
        controls.lanes.dataset.run = data.run;
        controls.lanes.replaceChildren(...data.lanes.map(({ title }, i) => button("", title, "", () => act.choose(i))));
      }
      [...controls.lanes.children].forEach((node, i) => {
        node.setAttribute("aria-pressed", i === state.lane);
        node.disabled = !data.lanes[i].steps.length;
      });
      setText(controls.where, `step ${state.step + 1} of ${last() + 1}`);
      controls.scrubber.max = last() + 1;
      controls.scrubber.value = state.step + 1;
      controls.scrubber.setAttribute("aria-valuetext", controls.where.textContent);
      controls.back.disabled = state.step === 0;
      controls.forth.disabled = state.step === last();
      setText(controls.play, state.timer ? "Pause" : "Play");
    }

    function drawWhatIf(step) {
      const actual = lane().threshold;
      whatIf.box.classList.toggle("absent", actual === null);
      if (actual === null) return;
      const supposed = threshold();
      whatIf.range.value = supposed;
      setText(whatIf.value, supposed.toFixed(2));
      setText(whatIf.answer, state.threshold === null ? UNTOUCHED : suppositionInWords(step, supposed, actual));
    }

    function suppositionInWords(step, supposed, actual) {
      const steps = lane().steps.map((_, index) => stepAt(index));
      const rate = (value) => mean(steps.map((one) => tokensOf(one, value))).toFixed(2);
      const here = `This step would keep ${keptPrefix(step.joints, supposed)} of ${step.joints.length}; it kept ${step.kept}.`;
      const overall = `Over ${count(steps.length, "step")}: ${rate(supposed)} tokens a step instead of ${rate(actual)},`;
      return `${here} ${overall} each taken as it stands; in truth, later steps would have differed.`;
    }

    function drawPanels(step) {
      const { rule } = lane();
      showLegend(panels.beams, DRAFT_LEGENDS[rule] ?? []);
      showLegend(panels.joint, LEGENDS[rule] ?? []);
      setText(panels.beams.heading, rule === "mtjd" ? "Blocks found" : PANELS.beams.title);
      setText(panels.joint.heading, rule === "mtjd" ? "Joint law" : PANELS.joint.title);
      setText(panels.joint.note, step.bound ?? "");
      const isJudged = lane().method === "mtad" && step.joints.length > 0;
      search.show({ run: data.run, lane: state.lane, step: state.step }, isJudged && Boolean(trigger)); // a report cannot ask
      const residual = figuresOf(state.step).next.figure?.data.some(({ name }) => name === "residual");
      showLegend(panels.next, residual ? LEGENDS.resampled : LEGENDS.next);
      showTable(panels.joint, HEADS[rule] ?? [], step.verdicts);
      panels.beams.details.hidden = true; // the verdicts' table holds its chosen block
      drawChoice(step);
      for (const [name, { key, figure }] of Object.entries(figuresOf(state.step))) show(panels[name], key, figure);
    }

    function drawChoice(step) {
      const names = step.choices.map(({ name }) => name);
      if (chooser.dataset.names !== names.join("\n")) {
        chooser.dataset.names = names.join("\n");
        chooser.replaceChildren(...names.map((name) => make("option", "", name)));
      }
      const index = choiceIndex(step);
      chooser.selectedIndex = index;
      chooser.disabled = names.length < 2;
      setText(panels.next.note, step.choices[index]?.note ?? "");
      drawBranches(step, index);
      showTable(panels.next, HEADS.next, step.choices[index]?.table ?? []);
    }

    function drawBranches(step, index) {
      const alternatives = step.choices[index]?.alternatives ?? [];
      branches.hidden = !alternatives.length || !trigger; // in a report there is no server to ask
      branches.replaceChildren(
        make("span", "lead", "Branch with"),
        ...alternatives.map(([token, text]) =>
          button("branch", text, `Go on from here with ${text}`, () => branchWith(token)),
        ),
      );
    }

    // Goes on with another token in the place of the one that is looked at.
    function branchWith(token) {
      const step = stepAt(state.step);
      trigger?.("select", { run: data.run, lane: state.lane, position: step.start + choiceIndex(step), token });
    }

    // By default the last token: the one that the target added.
    function choiceIndex(step) {
      return Math.min(state.token ?? Infinity, step.choices.length - 1);
    }

    // The figures of a step, each with a key that is different for whatever looks different.
    function figuresOf(index) {
      const step = stepAt(index);
      const choice = choiceIndex(step);
      const place = `${state.lane} ${index}`;
      return {
        beams: { key: place, figure: step.beams },
        joint: { key: `${place} ${state.threshold}`, figure: step.joint && supposing(step.joint) },
        next: { key: `${place} ${choice}`, figure: step.choices[choice]?.figure ?? null },
      };
    }

    // Adds the supposed τ to the figure of the verdicts.
    function supposing(figure) {
      if (state.threshold === null || lane().threshold === null) return figure;
      const shapes = figure.layout.shapes;
      const actual = shapes[shapes.length - 1];
      const line = { ...actual.line, color: look.templates[theme()].layout.xaxis.tickfont.color, dash: "dot" };
      const supposed = { ...actual, y0: state.threshold, y1: state.threshold, line };
      return { data: figure.data, layout: { ...figure.layout, shapes: [...shapes, supposed] } };
    }

    function frame() {
      return decodingExplorer.parts.frame(look, width);
    }

    function show(panel, key, figure) {
      panel.empty.hidden = Boolean(figure);
      if (!window.Plotly || !width) return;
      const which = `${panel.heading.textContent}, ${controls.where.textContent}`;
      panel.figure.setAttribute("aria-label", `${which}. Its numbers are in the tables.`);
      panel.stage.show(key, figure);
    }

    // One figure of a neighbouring step each time the browser has nothing else to do.
    function drawAhead() {
      if (!window.Plotly || !width) return;
      const neighbours = AHEAD.map((by) => state.step + by * state.ahead).filter((index) => lane().steps[index]);
      for (const index of neighbours) {
        for (const [name, { key, figure }] of Object.entries(figuresOf(index))) {
          if (!figure || panels[name].stage.has(key)) continue;
          panels[name].stage.prepare(key, figure);
          drawAheadSoon();
          return;
        }
      }
    }

    function drawAheadSoon() {
      cancelIdle(idle);
      idle = whenIdle(drawAhead);
    }

    function forgetFigures() {
      Object.values(panels).forEach((panel) => panel.stage.forget());
      drawSoon();
    }

    function highlight() {
      document.querySelectorAll(".token.current").forEach((token) => token.classList.remove("current"));
      const tokens = document.querySelectorAll(`.token[data-lane="${state.lane}"][data-step="${state.step}"]`);
      tokens.forEach((token) => token.classList.add("current"));
    }

    function scrollLane() {
      const token = document.querySelector(".token.current:not(.refused)");
      const text = token?.closest(".text");
      if (!text) return;
      const above = token.getBoundingClientRect().top - text.getBoundingClientRect().top;
      if (above < 0 || above > text.clientHeight - 30) text.scrollTop += above - text.clientHeight / 2;
    }

    function take(value) {
      data = { ...value }; // gradio changes in place what it was given
      if (state.run !== data.run) {
        stop();
        read = [];
        Object.assign(state, { run: data.run, step: 0, token: null, threshold: null, ahead: 0 });
        Object.values(panels).forEach((panel) => panel.stage.forget());
        state.lane = Math.max(0, data.lanes.length - 1);
        root.hidden = true;
      }
      if (root.hidden) {
        if (!lane()?.steps.length) return;
        root.hidden = false;
        openLinked();
        drawSoon();
      } else {
        drawControls();
        highlight();
      }
    }

    // A place is "lane.step", both counted from 1; a link may name one, and a recorded run does.
    function openLinked() {
      const [lane, step] = (toOpen ?? data.open ?? "").split(".").map(Number);
      toOpen = null;
      if (data.lanes[lane - 1]?.steps[step - 1]) act.open(lane - 1, step - 1);
    }

    decodingExplorer.place = () => `${state.lane + 1}.${state.step + 1}`;

    function onKey(event) {
      const moves = { ArrowLeft: () => act.move(-1), ArrowRight: () => act.move(1), Home: () => act.go(0) };
      const keys = { ...moves, End: () => act.go(last()), " ": act.play };
      if (root.hidden || !root.isConnected || !keys[event.key] || isBusyElsewhere(event)) return;
      event.preventDefault();
      keys[event.key]();
    }

    function onClick(event) {
      const token = event.target instanceof Element && event.target.closest(".token[data-lane][data-step]");
      if (!token || root.hidden || !root.isConnected) return;
      const own = `.token[data-lane="${token.dataset.lane}"][data-step="${token.dataset.step}"]:not(.refused)`;
      const position = [...document.querySelectorAll(own)].indexOf(token);
      openStep(Number(token.dataset.lane), Number(token.dataset.step), position < 0 ? null : position);
    }

    // For other parts of the page: opens a step, at the last of its tokens unless another is named.
    function openStep(laneIndex, index, token = null) {
      if (root.hidden || !data.lanes[laneIndex]?.steps.length) return;
      stop();
      state.threshold = null;
      act.open(laneIndex, index, token);
      bringIntoView(root);
    }

    chooser.addEventListener("change", () => {
      state.token = chooser.selectedIndex;
      drawSoon();
    });
    Object.values(panels).forEach((panel) => panel.details.addEventListener("toggle", drawSoon));
    document.addEventListener("keydown", onKey);
    document.addEventListener("click", onClick);
    document.querySelector("#plotly-script")?.addEventListener("load", drawSoon);
    onThemeChange(() => {
      read = [];
      forgetFigures();
    });
    new ResizeObserver(() => {
      if (panels.next.figure.clientWidth === width) return;
      width = panels.next.figure.clientWidth;
      forgetFigures();
    }).observe(row);
    decodingExplorer.openStep = openStep;
    decodingExplorer.follow(props, watch, (value) => {
      take(value);
      tellShown("inspector", value.run);
    });
  }

  return inspector;
})();
