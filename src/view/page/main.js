// Puts the page together: choices, pointer, keys, findings.

const find = (id) => document.getElementById(id);

class Viewer {
  constructor(payload) {
    this.payload = payload;
    this.models = [];
    this.chart = new Chart(find("chart"));
    this.lanes = new Lanes(find("lanes"), this.chart);
    this.segments = new SegmentMap(find("segments"), find("segments-told"));
    this.flame = new Flame();
    this.overlay = find("overlay");
    this.selected = -1;
    find("timeline").hidden = false;
    this.fillChoices();
    this.listen();
    this.chooseScene(0);
  }

  fillChoices() {
    this.payload.scenes.forEach((scene, index) => {
      const device = `GPU ${scene.device}` + (scene.name ? ` (${scene.name})` : "");
      find("scene").add(new Option(scene.part ? `${scene.part}, ${device}` : device, index));
    });
    find("scene-label").hidden = this.payload.scenes.length < 2;
  }

  chooseScene(index) {
    this.sceneIndex = index;
    this.model = this.models[index] ??= new Model(this.payload.scenes[index]);
    find("scene").value = index;
    const groupings = this.model.groupings.map((grouping, at) => new Option(grouping.by, at));
    find("grouping").replaceChildren(...groupings);
    if (this.selectedGrouping !== undefined && this.selectedGrouping < groupings.length) this.model.chooseGrouping(this.selectedGrouping);
    else this.model.chooseGrouping(this.model.tellingGrouping());
    find("grouping").value = this.model.groupings.indexOf(this.model.grouping);
    this.chart.setModel(this.model);
    this.lanes.setModel(this.model);
    this.flame.setModel(this.model);
    find("flame-part").hidden = this.model.stacks < 2;
    find("segments-part").hidden = !this.model.hasSegments;
    find("replay").replaceChildren(new Option("nothing", -1), ...this.model.whatIfs.map((replay, at) => new Option(replay.name, at)));
    find("replay-label").hidden = this.model.whatIfs.length === 0;
    this.chooseReplay(-1);
    this.tellLanes();
    this.selected = -1;
    this.moment = clamp(this.model.peakEvent, this.model.first, this.model.last - 1);
    showAllocation(this.model, -1, find("detail"));
    this.redraw(true);
  }

  chooseGrouping(index) {
    this.selectedGrouping = Number(index);
    this.model.chooseGrouping(this.selectedGrouping);
    this.chart.recolour();
    this.redraw(true);
  }

  // A replay of the same requests, drawn over what was recorded.
  chooseReplay(index) {
    const replay = this.model.whatIfs[index] ?? null;
    this.chart.setReplay(replay);
    find("replay").value = replay ? index : -1;
    document.querySelectorAll(".beside").forEach((button) => button.setAttribute("aria-pressed", String(replay !== null && Number(button.dataset.scene) === this.sceneIndex && Number(button.dataset.replay) === index)));
    if (replay) find("said").textContent = `Beside what was recorded: ${replay.name}, ${replay.told}, ${bytesText(replay.peak)} reserved at most.`;
    this.told();
    this.redraw();
  }

  // What the colours under the picture stand for.
  tellLanes() {
    const line = find("lanes-told"), kinds = this.lanes.kinds;
    line.hidden = kinds.length === 0;
    line.replaceChildren(...kinds.map(([word, colour, count]) => {
      const entry = element("span", `${word} × ${countText(count)}`, "kind");
      entry.prepend(element("i", undefined, "k" + colour.slice(3)));
      return entry;
    }));
  }

  // What the picture holds, and what it leaves out.
  told() {
    const { model } = this, parts = [`${countText(model.events)} events`];
    parts.push(model.stretch === 1 ? "each shown for itself" : `${countText(model.stretch)} to a column, which shows its highest moment`);
    parts.push(model.allKept ? (model.allocationCount === 1 ? "its one allocation can be seen" : `all ${countText(model.allocationCount)} allocations can be seen one by one`) : `of ${countText(model.allocationCount)} allocations the ${countText(model.keptCount)} that are largest, or last longest, can be seen one by one; the others are in the bands they belong to`);
    if (model.callCount > model.calls) parts.push(`of ${countText(model.callCount)} calls ${countText(model.calls)} are kept one by one, all are counted`);
    if (model.segmentCount > model.segments) parts.push(`of ${countText(model.segmentCount)} segments the ${countText(model.segments)} largest`);
    if (model.spanCount > model.spans) parts.push(`of ${countText(model.spanCount)} marked spans the ${countText(model.spans)} longest`);
    if (model.markCount > model.marks.length) parts.push(`of ${countText(model.markCount)} marks the first ${countText(model.marks.length)}`);
    const lines = ["The line above the bands is what was reserved from the driver; where a pixel stands for several events, the thin line in them is the least that was held"];
    if (model.capacity || model.allowed) lines.push("dashed: " + [model.capacity ? `the GPU's ${bytesText(model.capacity)}` : "", model.allowed ? `the program's limit of ${bytesText(model.allowed)}` : ""].filter(Boolean).join(" and "));
    if (this.chart.replay) lines.push(`the broken orange line is what a replay reserves: ${this.chart.replay.name}`);
    find("told").textContent = parts.join("; ") + ". " + lines.join("; ") + ".";
    this.chart.canvas.setAttribute("aria-label", `Memory of GPU ${model.device} over time. Peak ${bytesText(model.peak)} at event ${countText(model.peakEvent)}.`);
  }

  // The pictures are drawn once a frame, however often they are asked for; what hangs on the moment only where that changed.
  redraw(momentToo = false) {
    this.isMomentStale ||= momentToo;
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      const start = performance.now();
      this.chart.draw();
      this.lanes.draw();
      if (this.isMomentStale) this.showMoment();
      this.isMomentStale = false;
      this.drawOverlay();
      this.frameMs = performance.now() - start;
    });
  }

  recolour() {
    this.chart.recolour();
    this.chart.draw();
    this.lanes.draw();
    this.showMoment();
    this.flame.draw();
    this.drawOverlay();
  }

  showMoment() {
    const { model } = this, time = model.sinceStart(this.moment), mark = model.marks.find(([event]) => event === this.moment);
    const { all, sentence } = showLegend(model, this.chart.palette, this.moment, find("legend"), (group) => this.lookAtGroup(group));
    find("moment-title").textContent = `Event ${countText(this.moment)}` + (time === null ? "" : `, ${timeText(time)}`) + (mark ? `: ${mark[2] || "the end of a step"}` : this.moment === model.peakEvent ? ": the peak" : "") + `. ${capital(sentence)}.`;
    this.flame.askFor(this.moment);
    this.tellKinds();
    if (model.hasSegments) {
      this.segments.setModel(model, this.chart.palette);
      this.segments.draw(this.moment);
    }
    find("said").textContent = `Event ${this.moment}, ${bytesText(all)} allocated.`;
  }

  // What the colours of the flame graph stand for, where those above it stand for something else.
  tellKinds() {
    const { model } = this, { groups } = model.groupings[0], isKnown = model.grouping === model.groupings[0];
    const kinds = isKnown ? [] : groupPalette(groups.length).map(({ css }, group) => {
      const entry = element("span", groups[group], "kind"), swatch = element("i");
      swatch.style.background = css;
      entry.prepend(swatch);
      return entry;
    });
    find("flame-kinds").replaceChildren(...kinds);
  }

  drawOverlay() {
    const { chart, overlay } = this, context = overlay.getContext("2d"), ratio = chart.ratio;
    overlay.width = chart.canvas.width;
    overlay.height = chart.canvas.height;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.beginPath();
    context.rect(MARGIN.left, MARGIN.top, chart.width - MARGIN.left - MARGIN.right, chart.height - MARGIN.top - MARGIN.bottom);
    context.clip();
    context.strokeStyle = chart.ink;
    context.lineWidth = 1.5;
    const x = chart.xOf(this.moment + 0.5);
    context.beginPath();
    context.moveTo(x, MARGIN.top);
    context.lineTo(x, chart.height - MARGIN.bottom);
    context.stroke();
    if (this.selected >= 0) {
      const { model } = this, from = chart.xOf(model.born[this.selected]), to = chart.xOf(Math.min(model.died[this.selected], model.last));
      context.fillStyle = chart.ink;
      context.fillRect(from, chart.height - MARGIN.bottom - 5, Math.max(2, to - from), 5);
    }
    if (this.stretch) {
      context.fillStyle = "rgba(120, 140, 170, .3)";
      context.fillRect(Math.min(...this.stretch), MARGIN.top, Math.abs(this.stretch[1] - this.stretch[0]), chart.height);
    }
  }

  chooseMoment(event, keepInView = true) {
    const { model, chart } = this;
    this.moment = clamp(Math.round(event), model.first, model.last - 1);
    const { from, to } = chart.view;
    if (keepInView && (this.moment < from || this.moment > to)) chart.setView(this.moment - (to - from) / 2, this.moment + (to - from) / 2);
    this.redraw(true);
  }
  select(allocation) {
    this.selected = allocation;
    showAllocation(this.model, allocation, find("detail"));
    this.redraw();
  }
  lookAtGroup(group) {
    const { model } = this, count = model.groupCount;
    let best = 0;
    for (let column = 0; column < model.columnCount; column++) if (model.grouping.bytes[column * count + group] > model.grouping.bytes[best * count + group]) best = column;
    this.chooseMoment(model.peaks[best]);
  }

  // A line or a module by its name, where the picture has a band for it.
  lookAtName(name) {
    const index = this.model.groupings.findIndex((one) => one.groups.includes(name));
    if (index < 0) return;
    find("grouping").value = index;
    this.chooseGrouping(index);
    this.lookAtGroup(this.model.grouping.groups.indexOf(name));
    find("timeline").scrollIntoView({ block: "nearest" });
  }

  // To a finding's moment, its line chosen where the picture has it.
  jump(number) {
    const target = this.payload.jumps[number];
    if (!target || target.scene === null) return;
    if (target.scene !== this.sceneIndex) this.chooseScene(target.scene);
    const { model, chart } = this, length = Math.max(model.events / 8, Math.min(model.events, 400));
    if (target.event !== null) {
      chart.whole();
      chart.setView(target.event - length / 2, target.event + length / 2);
      this.chooseMoment(target.event);
    }
    const isThere = (place) => model.places[place][1] === target.line && model.files[model.places[place][0]] === target.file;
    let best = -1;
    for (let at = 0; at < model.keptCount && target.line; at++) {
      if (model.born[at] > this.moment || model.died[at] <= this.moment || (best >= 0 && model.size[at] <= model.size[best])) continue;
      if (isThere(model.lineOf(at))) best = at;
    }
    if (best >= 0) this.select(best);
    document.querySelectorAll(".finding").forEach((card) => card.classList.toggle("chosen", card.id === "finding-" + number));
    this.lastFinding = number;
    find("timeline").scrollIntoView({ block: "nearest" });
  }

  showTip(told, x, y) {
    const tip = find("tip");
    tip.hidden = !told;
    if (!told) return;
    tip.replaceChildren(element("b", told.title), ...told.lines.map((line) => element("div", line)));
    // Inside the pictures' own part of the page: what stands beside it, or above, stays readable.
    const room = find("timeline").getBoundingClientRect(), { offsetWidth: width, offsetHeight: height } = tip;
    const left = x + 16 + width <= Math.min(room.right, window.innerWidth) ? x + 16 : x - 16 - width, top = y + 16 + height <= window.innerHeight ? y + 16 : y - 16 - height;
    tip.style.left = Math.max(left, room.left, 0) + "px";
    tip.style.top = Math.max(top, room.top, 0) + "px";
  }

  under(event) {
    const { chart, model } = this, moment = chart.momentAt(event.offsetX), bytes = chart.bytesAt(event.offsetY);
    return { moment, ...model.at(moment, bytes, (chart.view.high - chart.view.low) / chart.rows) };
  }
  hover(event) {
    const { model } = this, { moment, group, allocation } = this.under(event);
    if (group < 0) return this.showTip(null);
    if (allocation >= 0) return this.showTip(tipOf(model, allocation), event.clientX, event.clientY);
    this.showTip({ title: model.grouping.groups[group], lines: [bytesText(model.groupsAt(moment).bytes[group]) + " at event " + countText(moment), "here smaller allocations, which are not kept one by one"] }, event.clientX, event.clientY);
  }

  listen() {
    const { chart } = this, canvas = chart.canvas, on = (id, kind, act) => find(id).addEventListener(kind, act);
    on("scene", "change", (event) => this.chooseScene(Number(event.target.value)));
    on("grouping", "change", (event) => this.chooseGrouping(event.target.value));
    on("replay", "change", (event) => this.chooseReplay(Number(event.target.value)));
    document.querySelectorAll(".beside").forEach((button) => {
      button.hidden = false;
      button.addEventListener("click", () => {
        const isOn = button.getAttribute("aria-pressed") === "true", scene = Number(button.dataset.scene);
        if (scene !== this.sceneIndex) this.chooseScene(scene);
        this.chooseReplay(isOn ? -1 : Number(button.dataset.replay));
        find("timeline").scrollIntoView({ block: "nearest" });
      });
    });
    document.querySelectorAll(".copy").forEach((button) => (button.hidden = false));
    document.addEventListener("click", (event) => {
      const button = event.target.closest?.(".copy");
      if (button) copyPlace(button, find("said"));
    });
    document.querySelectorAll(".treemap").forEach((map) => walkTreemap(map, (name) => this.lookAtName(name)));
    const buttons = { "zoom-in": () => chart.zoom(0.5, this.moment), "zoom-out": () => chart.zoom(2, this.moment), taller: () => chart.zoomBytes(0.5), flatter: () => chart.zoomBytes(2), whole: () => chart.whole(), peak: () => this.chooseMoment(this.model.peakEvent) };
    for (const [id, act] of Object.entries(buttons)) on(id, "click", () => (act(), this.redraw()));
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      const factor = Math.exp(clamp(event.deltaY || event.deltaX, -240, 240) / 400);
      if (event.shiftKey) chart.zoomBytes(factor, chart.bytesAt(event.offsetY));
      else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.pan((event.deltaX / chart.width) * (chart.view.to - chart.view.from), 0);
      else chart.zoom(factor, chart.eventAt(event.offsetX));
      this.redraw();
    }, { passive: false });
    let drag = null;
    canvas.addEventListener("pointerdown", (event) => {
      drag = { x: event.offsetX, y: event.offsetY, view: { ...chart.view }, moved: false, chooses: event.shiftKey };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!drag) return this.hover(event);
      drag.moved ||= Math.hypot(event.offsetX - drag.x, event.offsetY - drag.y) > 4;
      if (!drag.moved) return;
      this.showTip(null);
      const { from, to, low, high } = drag.view, across = ((drag.x - event.offsetX) / (chart.width - MARGIN.left - MARGIN.right)) * (to - from);
      if (drag.chooses) this.stretch = [drag.x, event.offsetX];
      else chart.setView(from + across, to + across, low + ((event.offsetY - drag.y) / (chart.height - MARGIN.top - MARGIN.bottom)) * (high - low), high + ((event.offsetY - drag.y) / (chart.height - MARGIN.top - MARGIN.bottom)) * (high - low));
      this.redraw();
    });
    canvas.addEventListener("pointerup", (event) => {
      const ended = drag;
      drag = null;
      if (this.stretch) {
        const [one, other] = this.stretch.map((x) => chart.eventAt(x)).sort((a, b) => a - b);
        this.stretch = null;
        chart.setView(one, other);
        this.redraw();
      } else if (ended && !ended.moved) {
        const { moment, allocation, group } = this.under(event);
        this.chooseMoment(moment, false);
        if (group >= 0) this.select(allocation);
      }
    });
    canvas.addEventListener("pointerleave", () => this.showTip(null));
    canvas.addEventListener("keydown", (event) => this.key(event));
    const hovers = (target, ask) => {
      target.addEventListener("pointermove", (event) => {
        const told = ask(event.offsetX, event.offsetY);
        this.showTip(told && told.allocation !== undefined ? tipOf(this.model, told.allocation) : told, event.clientX, event.clientY);
      });
      target.addEventListener("pointerleave", () => this.showTip(null));
      target.addEventListener("click", (event) => {
        const told = ask(event.offsetX, event.offsetY);
        if (told && told.allocation !== undefined) this.select(told.allocation);
        if (told && told.event !== undefined) this.chooseMoment(told.event, false);
      });
    };
    hovers(this.lanes.canvas, (x, y) => this.lanes.at(x, y));
    hovers(this.segments.canvas, (x, y) => this.segments.at(x, y));
    this.steps(this.lanes);
    this.steps(this.segments);
    this.flame.listen((told, x, y) => this.showTip(told, x, y));
    document.querySelectorAll(".jump").forEach((button) => {
      const target = this.payload.jumps[Number(button.dataset.finding)];
      button.hidden = !target || target.scene === null || target.event === null;
      button.addEventListener("click", () => this.jump(Number(button.dataset.finding)));
    });
    new ResizeObserver(() => this.redraw(true)).observe(canvas);
    // Paper is white: before a page is printed it is drawn anew, and there is no frame to wait for.
    for (const media of ["(prefers-color-scheme: dark)", "print"]) matchMedia(media).addEventListener("change", () => this.recolour());
  }

  // From one to the next by keys; Enter chooses it, as a click does.
  steps(part) {
    let told = null;
    part.canvas.addEventListener("keydown", (event) => {
      const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (event.ctrlKey || event.altKey || event.metaKey || (!by && event.key !== "Enter")) return;
      event.preventDefault();
      if (by) {
        told = part.step(by);
        if (!told) return;
        const { title, lines } = told.allocation !== undefined ? tipOf(this.model, told.allocation) : told, box = part.canvas.getBoundingClientRect();
        this.showTip({ title, lines }, box.left, box.bottom);
        find("said").textContent = [title, ...lines].join(", ");
      } else if (told) {
        if (told.allocation !== undefined) this.select(told.allocation);
        if (told.event !== undefined) this.chooseMoment(told.event);
      }
    });
    part.canvas.addEventListener("blur", () => this.showTip(null));
  }

  pan(across, up) {
    const { from, to, low, high } = this.chart.view;
    this.chart.setView(from + across, to + across, low + up, high + up);
  }
  key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const { chart, model } = this, { from, to, low, high } = chart.view, step = (to - from) / 10, column = Math.max(1, Math.round((to - from) / chart.columns));
    const keys = {
      ArrowLeft: () => this.pan(-step, 0), ArrowRight: () => this.pan(step, 0), ArrowUp: () => this.pan(0, (high - low) / 10), ArrowDown: () => this.pan(0, (low - high) / 10),
      "+": () => chart.zoom(0.7, this.moment), "=": () => chart.zoom(0.7, this.moment), "-": () => chart.zoom(1.4, this.moment), "]": () => chart.zoomBytes(0.7), "[": () => chart.zoomBytes(1.4),
      ",": () => this.chooseMoment(this.moment - column), ".": () => this.chooseMoment(this.moment + column), Home: () => chart.whole(), p: () => this.chooseMoment(model.peakEvent),
      n: () => this.jump(((this.lastFinding ?? -1) + 1) % Math.max(1, this.payload.jumps.length)), Enter: () => this.select(model.largestAt(this.moment)),
    };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
    this.redraw();
  }
}

// One stop for the Tab key; arrows go from cell to cell, by where they lie. A cell leads to its line or module in the picture.
function walkTreemap(map, look) {
  const cells = [...map.querySelectorAll("g")], middle = (cell) => {
    const box = cell.querySelector("rect").getBBox();
    return [box.x + box.width / 2, box.y + box.height / 2];
  };
  cells.forEach((cell, at) => cell.setAttribute("tabindex", at ? "-1" : "0"));
  map.addEventListener("click", (event) => event.target.closest("g") && look(event.target.closest("g").dataset.name));
  map.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.target.closest("g")) return look(event.target.closest("g").dataset.name);
    const way = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[event.key], from = event.target.closest("g");
    if (!way || !from) return;
    event.preventDefault();
    const [x, y] = middle(from), far = (cell) => {
      const [right, down] = middle(cell), along = (right - x) * way[0] + (down - y) * way[1], across = Math.abs((right - x) * way[1]) + Math.abs((down - y) * way[0]);
      return along > 0.5 ? along + 2 * across : Infinity;
    };
    const next = cells.reduce((best, cell) => (far(cell) < far(best) ? cell : best), from);
    if (next === from) return;
    from.setAttribute("tabindex", "-1");
    next.setAttribute("tabindex", "0");
    next.focus();
  });
}

const block = find("payload");
if (block) {
  readPayload(block.textContent.trim()).then(
    (payload) => {
      window.faultline = new Viewer(payload);
      document.documentElement.dataset.ready = "yes";
    },
    (problem) => {
      const sentence = element("p", "The picture could not be read: " + problem.message + ". The findings are complete.");
      find("timeline").before(sentence);
      document.documentElement.dataset.ready = "no";
    },
  );
}
