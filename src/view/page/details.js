// What is known of one allocation, and of one moment, in words. Everything is put into the page as text, never as markup.

function element(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

function lifetimeText(model, at) {
  const { born, died } = model, begin = `from event ${countText(born[at])}`;
  if (died[at] === NEVER) return begin + " to the end of the recording";
  const from = model.timeAt(born[at]), to = model.timeAt(died[at]);
  const length = `${countText(died[at] - born[at])} events` + (from === null ? "" : `, ${model.stretch > 1 ? "about " : ""}${timeText(to - from)}`);
  return `${begin} to ${countText(died[at])} (${length})`;
}

function groupName(model, by, at) {
  const grouping = model.groupings.find((one) => one.by === by);
  return grouping ? grouping.groups[grouping.of[at]] : "";
}

function tipOf(model, at) {
  const lines = [model.placeText(model.lineOf(at)) || "no line is known", model.texts[model.tensor[at]], groupName(model, "category", at), lifetimeText(model, at)];
  return { title: bytesText(model.size[at]), lines: lines.filter(Boolean) };
}

function sourceOf(model, place) {
  const source = model.sources[place];
  if (!source) return null;
  const [first, lines] = source, here = model.places[place][1], shownLines = element("pre", undefined, "source");
  lines.forEach((text, index) => {
    const line = element("span", String(first + index).padStart(5) + (first + index === here ? " ▶ " : "   ") + text + "\n");
    if (first + index === here) line.className = "here";
    shownLines.append(line);
  });
  return shownLines;
}

// The place to copy, and a link that editors open: of a whole path only, and of that scheme whatever the name holds.
function sourceLinks(model, place) {
  const [file, line] = model.places[place], path = model.files[file], made = element("dd");
  if (!path || !line) return null;
  const copy = element("button", "Copy " + path.slice(path.lastIndexOf("/") + 1) + ":" + line, "copy");
  copy.type = "button";
  copy.dataset.place = path + ":" + line;
  made.append(copy);
  if (/^\/[^/]/.test(path) && path.length <= 1024) {
    const link = element("a", "Open in VS Code", "open");
    link.href = "vscode://file" + path.split("/").map(encodeURIComponent).join("/") + ":" + line;
    made.append(" ", link);
  }
  return made;
}

async function copyPlace(button, said) {
  const text = button.dataset.place;
  try {
    await navigator.clipboard.writeText(text);
  } catch (problem) {
    // a page that may not: by hand
    const area = element("textarea", text, "unseen");
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  said.textContent = "Copied " + text;
  button.classList.add("copied");
  setTimeout(() => button.classList.remove("copied"), 1500);
}

function showAllocation(model, at, into) {
  into.replaceChildren();
  if (at < 0) return into.append(element("p", "Click one in the picture, or press Enter in it.", "dim"));
  const list = element("dl"), add = (name, text) => {
    if (text) list.append(element("dt", name), element("dd", text));
  };
  const place = model.lineOf(at);
  add("size", bytesText(model.size[at]) + ` (${countText(model.size[at])} bytes` + (model.slack[at] > 0 ? `, ${countText(model.size[at] - model.slack[at])} requested` : "") + ")");
  add("line", model.placeText(place, false) || "not known");
  const links = place ? sourceLinks(model, place) : null;
  if (links) list.append(element("dt", ""), links);
  add("tensor", model.texts[model.tensor[at]]);
  add("for", groupName(model, "category", at));
  add("module", groupName(model, "module", at));
  add("held", lifetimeText(model, at));
  if (model.address[at]) add("address", "0x" + model.address[at].toString(16));
  into.append(list);
  const source = sourceOf(model, place);
  if (source) into.append(source);
  const frames = model.framesOf(model.stack[at]);
  if (frames.length > 1) {
    const stack = element("details"), rows = element("pre");
    stack.append(element("summary", `Call stack, ${frames.length} frames`), rows);
    rows.textContent = frames.map((frame) => model.placeText(frame, false)).join("\n");
    into.append(stack);
  }
}

// The legend is the account of the chosen moment.
function showLegend(model, palette, moment, body, choose) {
  const { bytes, isExact } = model.groupsAt(moment), all = bytes.reduce((sum, part) => sum + part, 0);
  const focused = [...body.querySelectorAll("button")].indexOf(document.activeElement);
  body.replaceChildren();
  // the uppermost in the picture comes first
  for (let group = model.groupCount - 1; group >= 0; group--) {
    const row = body.appendChild(element("li")), swatch = element("canvas");
    swatch.width = swatch.height = 14;
    const context = swatch.getContext("2d");
    context.fillStyle = palette[group].css;
    context.fillRect(0, 0, 14, 14);
    if (palette[group].hatched) {
      context.strokeStyle = "#00000090";
      for (let at = -14; at < 14; at += 6) {
        context.moveTo(at, 14);
        context.lineTo(at + 14, 0);
      }
      context.stroke();
    }
    const entry = row.appendChild(element("button", undefined, "entry"));
    entry.type = "button";
    entry.title = model.grouping.groups[group] + ": show the moment when this held most";
    swatch.setAttribute("aria-hidden", "true");
    entry.append(swatch, element("span", model.grouping.groups[group]));
    row.append(element("span", bytesText(bytes[group])), element("span", shareText(bytes[group], all), "share"));
    entry.addEventListener("click", () => choose(group));
  }
  if (focused >= 0) body.querySelectorAll("button")[focused]?.focus();
  const reserved = model.hasSegments ? `, ${bytesText(model.reserved[model.columnOf(moment)])} reserved` + (model.stretch > 1 ? " at most" : "") : "";
  return { all, sentence: `${isExact ? "" : "about "}${bytesText(all)} allocated${reserved}` };
}
