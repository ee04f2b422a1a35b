// The lanes of the next race, to be added, removed and changed. Each is a text as on the command line: "mtad,threshold=0.1".
decodingExplorer.laneEditor = (() => {
  const { make, setText } = decodingExplorer;
  const AS_ABOVE = "as above";

  function parse(text) {
    const [method, ...changes] = String(text).split(",").map((part) => part.trim());
    return { method, changes: Object.fromEntries(changes.map((change) => change.split(/=(.*)/s, 2))) };
  }

  function write({ method, changes }) {
    return [method, ...Object.entries(changes).map(([name, value]) => `${name}=${value}`)].join(",");
  }

  function labelled(caption, control) {
    const label = make("label", "field");
    control.setAttribute("aria-label", caption); // the label's own text would hold all options
    label.append(make("span", "caption", caption), control);
    return label;
  }

  function select(options, chosen, onChange) {
    const box = make("select");
    for (const [value, text] of options) {
      const option = make("option", "", text);
      option.value = value;
      option.selected = value === chosen;
      box.append(option);
    }
    box.addEventListener("change", () => onChange(box.value));
    return box;
  }

  function numberBox(isWhole, value, onChange) {
    const box = make("input");
    Object.assign(box, { type: "number", step: isWhole ? 1 : "any", placeholder: AS_ABOVE, value: value ?? "" });
    box.addEventListener("input", () => onChange(box.value));
    return box;
  }

  return function laneEditor(element, props, watch, trigger, offer) {
    const { methods, pairs, fields, fewest, most } = offer;
    const root = make("div", "lane-editor");
    const list = make("ol", "rows");
    const add = make("button", "add", "Add a lane");
    add.type = "button";
    const hint = make("p", "hint", `${fewest} to ${most} lanes. What a lane does not set is as above and in the settings.`);
    root.append(list, add, hint);
    element.replaceChildren(root);
    let lanes = [];
    let written = "";

    function save() {
      written = JSON.stringify(lanes.map(write));
      props.value = written;
    }

    function setChange(lane, name, value) {
      if (value === "") delete lane.changes[name];
      else lane.changes[name] = value;
      save();
    }

    function fieldOf(lane, { name, label, choices, whole }) {
      const change = (value) => setChange(lane, name, value);
      const options = [["", AS_ABOVE], ...choices.map((choice) => [choice, choice])];
      const value = lane.changes[name];
      return labelled(label, choices.length ? select(options, value ?? "", change) : numberBox(whole, value, change));
    }

    function rowOf(lane, index) {
      const row = make("li");
      row.setAttribute("role", "group");
      row.setAttribute("aria-label", `Lane ${index + 1}`);
      const titles = Object.entries(methods).map(([key, { title }]) => [key, title]);
      const changeMethod = (method) => {
        const kept = Object.entries(lane.changes).filter(
          ([name]) => name === "preset" || methods[method].uses.includes(name),
        );
        lanes[index] = { method, changes: Object.fromEntries(kept) };
        save();
        draw();
        list.children[index].querySelector("select").focus();
      };
      const pairOptions = [["", AS_ABOVE], ...Object.entries(pairs)];
      const uses = methods[lane.method]?.uses ?? [];
      const remove = make("button", "remove", "Remove");
      remove.type = "button";
      remove.setAttribute("aria-label", `Remove lane ${index + 1}`);
      remove.disabled = lanes.length <= fewest;
      remove.addEventListener("click", () => {
        lanes.splice(index, 1);
        save();
        draw();
        add.focus();
      });
      const settings = make("div", "fields");
      settings.append(
        labelled("Method", select(titles, lane.method, changeMethod)),
        labelled("Pair", select(pairOptions, lane.changes.preset ?? "", (key) => setChange(lane, "preset", key))),
        ...fields.filter(({ name }) => uses.includes(name)).map((field) => fieldOf(lane, field)),
      );
      row.append(settings, remove);
      return row;
    }

    function draw() {
      list.replaceChildren(...lanes.map(rowOf));
      add.disabled = lanes.length >= most;
      setText(add, add.disabled ? `No more than ${most} lanes` : "Add a lane");
    }

    function take() {
      if (props.value === written) return;
      written = props.value;
      lanes = JSON.parse(written).map(parse);
      draw();
    }

    add.addEventListener("click", () => {
      const last = lanes[lanes.length - 1];
      lanes.push({ method: last.method, changes: { ...last.changes } });
      save();
      draw();
      list.lastElementChild.querySelector("select").focus();
    });
    take();
    watch("value", take);
  };
})();
