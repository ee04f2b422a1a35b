// Draws the title, the status line and the race, and lends the other scripts its means. Text of models and visitors only ever becomes textContent.
const decodingExplorer = (() => {
  const ORIGINS = {
    sampled: "sampled from the target",
    accepted: "drafted and accepted",
    resampled: "resampled after a refusal",
    bonus: "bonus after a fully accepted block",
    forced: "forced by the reader",
    refused: "drafted and refused",
  };
  const LEGEND = [
    ["sampled", "from the target"],
    ["accepted", "drafted and kept"],
    ["resampled", "in place of a refused token"],
    ["bonus", "after a block kept whole"],
    ["refused", "drafted and dropped"],
  ];

  function make(tag, className, text) {
    const node = document.createElement(tag);
    if (className) node.className = className;
    if (text !== undefined) node.textContent = text;
    return node;
  }

  function setText(node, text) {
    if (node.textContent !== text) node.textContent = text;
  }

  // Calls draw with the value now and whenever it changes.
  function follow(props, watch, draw) {
    draw(props.value);
    watch("value", () => draw(props.value));
  }

  function title(element, props, watch) {
    const bar = make("header", "titlebar");
    const pair = make("p", "pair");
    const target = make("span", "model");
    const draft = make("span", "model");
    const remark = make("p", "pair-remark");
    pair.append(
      make("span", "role", "target"), target, make("span", "arrow", "⟵"), make("span", "role", "draft"), draft,
    );
    bar.append(make("h1", "", "Decoding Explorer"), pair, remark);
    element.replaceChildren(bar);
    follow(props, watch, (value) => {
      setText(target, value.target);
      setText(draft, value.draft);
      setText(remark, value.remark);
    });
  }

  function status(element, props, watch) {
    const line = make("p", "status-line");
    line.setAttribute("role", "status");
    line.setAttribute("aria-live", "polite");
    const text = make("span", "status-text");
    line.append(make("span", "status-mark"), text);
    element.replaceChildren(line);
    follow(props, watch, (value) => {
      line.dataset.kind = value.kind;
      setText(text, value.text);
    });
  }

  function legend() {
    const box = make("div", "legend");
    const list = make("dl", "origins");
    for (const [origin, meaning] of LEGEND) {
      const entry = make("div", "origin");
      const term = make("dt");
      term.append(make("span", `token ${origin}`, origin));
      entry.append(term, make("dd", "", meaning));
      list.append(entry);
    }
    const label = make("label", "show-refused");
    const checkbox = make("input");
    checkbox.type = "checkbox";
    label.append(checkbox, "show refused tokens");
    box.append(list, label);
    return [box, checkbox];
  }

  function drawPart([kind, text], breaksLines) {
    if (kind === "text") return document.createTextNode(text);
    const part = make("span", `part ${kind}`, kind === "newline" && !breaksLines ? "" : text);
    if (kind === "byte") part.title = `byte ${text} of a character that is not complete yet`;
    if (kind === "hidden") part.title = "an invisible character";
    return part;
  }

  function drawToken(token, lane) {
    const node = make("span", `token ${token.origin}`);
    node.dataset.lane = lane;
    node.dataset.step = token.step;
    node.dataset.id = token.id;
    const likely = token.p === undefined ? "" : `, probability under the target ${token.p.toPrecision(3)}`;
    node.title = `step ${token.step + 1}: ${ORIGINS[token.origin]}${likely}`;
    node.append(...token.parts.map((part) => drawPart(part, token.origin !== "refused")));
    return node;
  }

  function makeLane(data, index) {
    const root = make("section", "lane");
    root.dataset.lane = index;
    root.dataset.method = data.method;
    const heading = make("h2", "", data.title);
    heading.id = `lane-${index}`;
    root.setAttribute("aria-labelledby", heading.id);
    const models = make("p", "models", data.models);
    const how = make("p", "how", data.how);
    const promise = make("p", `promise ${data.lossless ? "lossless" : "lossy"}`, data.promise);
    const track = make("div", "track");
    const bar = make("div", "bar");
    track.append(bar);
    const text = make("div", "text");
    text.tabIndex = 0;
    text.setAttribute("role", "region");
    text.setAttribute("aria-label", `Text of ${data.title}`);
    const remark = make("p", "remark");
    const common = make("p", "common");
    const figures = make("dl", "figures");
    const values = data.figures.map(({ name, meaning }) => {
      const cell = make("div", "figure");
      cell.title = meaning;
      const value = make("dd");
      cell.append(make("dt", "", name), value);
      figures.append(cell);
      return value;
    });
    const speed = make("p", "speed");
    const verdict = make("strong");
    const reason = make("span");
    speed.append(verdict, " ", reason);
    root.append(heading, models, how, promise, track, text, remark, common, figures, speed);
    const lane = { root, bar, text, remark, common, values, speed, verdict, reason, read: 0, following: true };
    const parting = make("span", "parting");
    parting.title = "from here on this lane differs from all others";
    Object.assign(lane, { title: data.title, written: [], parting });
    text.addEventListener("scroll", () => {
      lane.following = text.scrollHeight - text.scrollTop - text.clientHeight < 24;
    });
    return lane;
  }

  // `tokens` only ever grows: what has been read is drawn, and the rest is one line of JSON a token.
  function appendTokens(lane, tokens, index) {
    if (tokens.length === lane.read) return;
    for (const line of tokens.slice(lane.read).trimEnd().split("\n")) {
      const token = JSON.parse(line);
      // A line may break before the space that a word begins with, not behind it: so a token stays in one piece.
      if (token.parts[0]?.[0] === "space") lane.text.append(make("wbr", token.origin));
      const node = drawToken(token, index);
      lane.text.append(node);
      if (token.origin !== "refused") lane.written.push({ id: token.id, node });
    }
    lane.read = tokens.length;
    if (!lane.following) return;
    requestAnimationFrame(() => {
      lane.text.scrollTop = lane.text.scrollHeight;
    });
  }

  function updateLane(lane, data, index) {
    lane.root.dataset.state = data.state;
    lane.bar.style.transform = `scaleX(${data.progress})`;
    data.figures.forEach(({ value }, i) => setText(lane.values[i], value));
    setText(lane.remark, data.remark);
    lane.speed.hidden = !data.speed;
    setText(lane.verdict, data.speed?.verdict ?? "");
    setText(lane.reason, data.speed?.reason ?? "");
  }

  function commonLength(ours, theirs) {
    const end = ours.findIndex(({ id }, i) => id !== theirs[i]?.id);
    return end < 0 ? ours.length : end;
  }

  // Marks how far each lane begins with the same tokens as another one.
  function markCommon(lanes) {
    for (const lane of lanes) {
      const others = lanes.filter((other) => other !== lane);
      const lengths = others.map((other) => commonLength(lane.written, other.written));
      const longest = Math.max(0, ...lengths);
      const partsThere = longest > 0 && longest < lane.written.length;
      if (partsThere) lane.written[longest - 1].node.after(lane.parting);
      else lane.parting.remove();
      const partner = others[lengths.indexOf(longest)];
      const first = longest === 1 ? "first token is" : `first ${longest} tokens are`;
      setText(lane.common, longest ? `Its ${first} as in ${partner.title}${partsThere ? ", up to the bar" : ""}.` : "");
    }
  }

  function race(element, props, watch) {
    const [key, showRefused] = legend();
    const row = make("div", "lanes");
    element.replaceChildren(key, row);
    showRefused.addEventListener("change", () => row.classList.toggle("with-refused", showRefused.checked));
    let run = null;
    let lanes = [];
    follow(props, watch, (value) => {
      const rests = value.lanes.map(({ rest }) => JSON.parse(rest));
      if (run !== value.run) {
        run = value.run;
        row.dataset.run = run;
        lanes = rests.map(makeLane);
        row.replaceChildren(...lanes.map((lane) => lane.root));
      }
      lanes.forEach((lane, index) => {
        appendTokens(lane, value.lanes[index].tokens, index);
        updateLane(lane, rests[index], index);
      });
      markCommon(lanes);
    });
  }

  return { title, status, race, make, setText, follow };
})();
