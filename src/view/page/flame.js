// The flame graph of a moment: what lives then, by call stack, the callers above those they call, each as wide as what lives below it.

const FLAME = { row: 20, most: 200, least: 0.7 };

class Flame {
  constructor() {
    this.canvas = find("flame");
    this.context = this.canvas.getContext("2d");
    this.isStale = true;
    this.isSeen = false;
    this.matches = null;
  }

  setModel(model) {
    this.model = model;
    this.held = model.held ??= new HeldStacks(model);
    this.way = [];
    this.findPlaces();
    this.askFor(null);
  }

  // Drawn anew when there is time, and only where it is seen: a moment that is passed by costs nothing.
  askFor(moment) {
    this.moment = moment ?? this.moment;
    this.isStale = true;
    if (moment === null || !this.isSeen) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.isStale && this.draw(), 20);
  }

  // Frames keep their place from moment to moment, as far as they are there.
  rebuild() {
    if (this.builtFor === this.moment && this.builtOf === this.model && this.root) return;
    this.held.take(this.moment);
    this.builtFor = this.moment;
    this.builtOf = this.model;
    this.root = this.held.root();
    this.focus = this.root;
    for (const place of this.way) {
      const next = this.below(this.focus).find((frame) => frame.place === place && !frame.isRest);
      if (!next) break;
      this.focus = next;
    }
    this.cursor = this.focus;
    this.matched = null;
  }
  below(frame) {
    return this.held.below(frame, find("flame-all").checked);
  }

  draw() {
    if (!this.model || this.moment === undefined) return;
    const start = performance.now(), { context, canvas } = this, ratio = Math.min(window.devicePixelRatio || 1, 2);
    this.isStale = false;
    this.rebuild();
    this.width = Math.max(canvas.clientWidth, 200);
    this.palette = groupPalette(this.held.count);
    this.cells = [];
    const above = [];
    for (let frame = this.focus.up; frame; frame = frame.up) above.unshift(frame);
    above.forEach((frame, row) => this.cells.push({ frame, x: 0, width: this.width, row, isAbove: true }));
    this.lay(this.focus, 0, this.width, above.length);
    const rows = this.cells.reduce((most, cell) => Math.max(most, cell.row + 1), 1), height = Math.max(rows, 4) * FLAME.row + 2;
    canvas.style.height = height + "px";
    canvas.width = Math.round(this.width * ratio);
    canvas.height = Math.round(height * ratio);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    context.textAlign = "left";
    this.ink = cssColour("--ink");
    this.soft = cssColour("--soft");
    for (const cell of this.cells) this.paint(cell);
    this.tell();
    this.drawMs = performance.now() - start;
  }

  lay(frame, x, width, row) {
    this.cells.push({ frame, x, width, row });
    if (row + 1 >= FLAME.most) return;
    let from = x;
    for (const child of this.below(frame)) {
      const wide = (child.bytes / frame.bytes) * width;
      if (wide < FLAME.least) break;  // and so are all that follow
      this.lay(child, from, wide, row + 1);
      from += wide;
    }
  }

  isMatch(frame) {
    return this.matches && (this.matches[frame.place] || frame.passed.some((place) => this.matches[place]));
  }

  // In the colour of what most of it is, and below it a stripe of all that it is.
  paint({ frame, x, width, row, isAbove }) {
    const { context, palette } = this, y = row * FLAME.row, main = frame.parts.indexOf(Math.max(...frame.parts)), inner = Math.max(width - 1, 0.6);
    context.globalAlpha = this.matches && !this.isMatch(frame) ? 0.25 : isAbove ? 0.55 : 1;
    context.fillStyle = frame.up ? palette[main].css : this.soft;
    context.fillRect(x, y, inner, FLAME.row - 1);
    if (frame.parts[main] < 0.995 * frame.bytes) {
      let from = x;
      frame.parts.forEach((bytes, part) => {
        const wide = (bytes / frame.bytes) * inner;
        context.fillStyle = palette[part].css;
        context.fillRect(from, y + FLAME.row - 5, wide, 4);
        from += wide;
      });
    }
    context.globalAlpha = 1;
    if (frame === this.cursor && this.isFocused) {
      context.strokeStyle = this.ink;
      context.lineWidth = 2;
      context.strokeRect(x + 1, y + 1, Math.max(inner - 2, 1), FLAME.row - 3);
    }
    if (width < 26) return;
    context.save();
    context.beginPath();
    context.rect(x, y, inner - 3, FLAME.row);
    context.clip();
    context.fillStyle = !frame.up || isAbove || (this.matches && !this.isMatch(frame)) ? this.ink : palette[main].ink;
    const isMixed = frame.parts[main] < 0.995 * frame.bytes;
    context.fillText(width > 260 ? `${frame.name}  ${bytesText(frame.bytes)}, ${shareText(frame.bytes, this.root.bytes)}` : frame.name, x + 4, y + FLAME.row / 2 - (isMixed ? 2 : 0));
    context.restore();
  }

  toldOf(frame) {
    const lines = [`${bytesText(frame.bytes)}, ${shareText(frame.bytes, this.root.bytes)} of what lives then`];
    if (this.focus !== this.root && frame.bytes < this.focus.bytes) lines.push(`${shareText(frame.bytes, this.focus.bytes)} of ${this.focus.name}`);
    const parts = [...frame.parts].map((bytes, part) => [bytes, this.held.categories[part]]).filter(([bytes]) => bytes > 0).sort((a, b) => b[0] - a[0]);
    lines.push(parts.map(([bytes, name]) => `${name} ${bytesText(bytes)}`).join(", "));
    const passed = new Set(frame.passed).size;
    if (passed) lines.push(passed === 1 ? "1 frame of a library above it is not shown" : `${passed} frames of libraries above it are not shown`);
    return { title: frame.name, lines };
  }

  tell() {
    const { root, focus, held, model } = this, parts = [];
    parts.push(`${bytesText(root.bytes)} at event ${countText(this.moment)}` + (focus === root ? "" : `; ${focus.name} with all it calls: ${bytesText(focus.bytes)}, ${shareText(focus.bytes, root.bytes)}`));
    if (!held.isExact && !model.allKept) parts.push("small allocations are divided among call stacks as at a moment near by");
    if (this.matches) {
      const bytes = (this.matched ??= held.bytesWith(this.matches));
      parts.push(`found in ${bytesText(bytes)}, ${shareText(bytes, root.bytes)}`);
    }
    const sentence = parts.join("; ") + ".";
    find("flame-told").textContent = sentence;
    this.canvas.setAttribute("aria-label", "What lives at the chosen moment, by call stack: " + sentence);
    find("flame-out").disabled = focus === root;
    this.showFrame();
    if (find("flame-list").open) this.list();
  }

  // Of the frame that was zoomed to: its whole path, and its lines where they are known.
  showFrame() {
    const into = find("flame-frame"), { model, focus } = this;
    into.replaceChildren();
    if (!focus.place) return;
    const links = sourceLinks(model, focus.place), source = sourceOf(model, focus.place), line = element("p", model.placeText(focus.place, false) + " ");
    if (links) line.append(...links.childNodes);
    into.append(line);
    if (source) into.append(source);
  }

  // The largest ends of stacks as text: what a frame holds that none below it does.
  list() {
    const ends = [], open = [[this.focus, []]];
    while (open.length && ends.length < 20000) {
      const [frame, path] = open.pop(), below = this.below(frame), own = frame.bytes - below.reduce((sum, one) => sum + one.bytes, 0);
      const here = frame.up ? (path.length < 40 ? [...path, frame.name] : [...path.slice(0, 20), "…", ...path.slice(22), frame.name]) : path;
      if (own > 0.5 && here.length) ends.push([own, here]);
      for (const one of below) open.push([one, here]);
    }
    ends.sort((a, b) => b[0] - a[0]);
    const shown = ends.slice(0, 25).map(([bytes, path]) => {
      const item = element("li", `${bytesText(bytes)}, ${shareText(bytes, this.root.bytes)}: `);
      item.append(element("code", path.join(" › ")));
      return item;
    });
    find("flame-lines").replaceChildren(...shown);
    find("flame-more").textContent = ends.length > shown.length ? `${countText(ends.length - shown.length)} more hold less.` : "";
  }

  zoom(frame) {
    if (!frame || frame.isRest) return;
    this.focus = this.cursor = frame;
    this.way = [];
    for (let at = frame; at.up; at = at.up) this.way.unshift(at.place);
    this.draw();
    this.bringRow(frame.depth);
    this.say(frame);
  }
  say(frame) {
    const { title, lines } = this.toldOf(frame);
    find("said").textContent = [title, ...lines].join(", ");
  }

  findPlaces() {
    const term = find("flame-search").value.trim().toLowerCase();
    this.matched = null;
    this.matches = term ? Uint8Array.from(this.model.places, (_, place) => (place && this.model.placeText(place, false).toLowerCase().includes(term) ? 1 : 0)) : null;
  }

  cellAt(x, y) {
    return this.cells?.find((cell) => cell.row === Math.floor(y / FLAME.row) && x >= cell.x && x < cell.x + cell.width) ?? null;
  }

  listen(showTip) {
    const { canvas } = this;
    canvas.addEventListener("pointermove", (event) => {
      const cell = this.cellAt(event.offsetX, event.offsetY);
      showTip(cell && this.toldOf(cell.frame), event.clientX, event.clientY);
    });
    canvas.addEventListener("pointerleave", () => showTip(null));
    canvas.addEventListener("click", (event) => {
      showTip(null);
      this.zoom(this.cellAt(event.offsetX, event.offsetY)?.frame);
    });
    canvas.addEventListener("keydown", (event) => this.key(event));
    for (const kind of ["focus", "blur"]) {
      canvas.addEventListener(kind, () => {
        this.isFocused = kind === "focus";
        if (this.root) this.draw();
      });
    }
    find("flame-out").addEventListener("click", () => this.zoom(this.root));
    find("flame-search").addEventListener("input", () => {
      this.findPlaces();
      this.draw();
      const first = this.cells.filter((cell) => this.isMatch(cell.frame)).reduce((least, cell) => Math.min(least, cell.row), Infinity);
      if (first < Infinity) this.bringRow(first);
    });
    find("flame-all").addEventListener("change", () => {
      this.root = null;
      this.draw();
    });
    find("flame-list").addEventListener("toggle", () => this.root && this.tell());
    new IntersectionObserver(([seen]) => {
      this.isSeen = seen.isIntersecting;
      if (this.isSeen && this.isStale && this.moment !== undefined) this.draw();
    }).observe(find("flame-room"));
    new ResizeObserver(() => canvas.clientWidth !== this.width && this.askFor(this.moment)).observe(canvas);
  }

  bringRow(row) {
    const room = find("flame-room");
    room.scrollTop = clamp(room.scrollTop, (row + 2) * FLAME.row - room.clientHeight, row * FLAME.row);
  }

  key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey || !this.root) return;
    const { cursor } = this, beside = (by) => {
      const all = cursor.up ? this.below(cursor.up) : [cursor];
      return all[all.indexOf(cursor) + by];
    };
    const to = { ArrowDown: () => this.below(cursor)[0], ArrowUp: () => cursor.up, ArrowRight: () => beside(1), ArrowLeft: () => beside(-1) }[event.key];
    if (to) {
      event.preventDefault();
      const next = to();
      if (!next) return;
      this.cursor = next;
      // what cannot be seen from here is zoomed to
      if (!this.cells.some((cell) => cell.frame === next)) this.focus = next.up ?? next;
      this.draw();
      this.say(next);
      this.bringRow(this.cells.find((cell) => cell.frame === next)?.row ?? 0);
    } else if (event.key === "Enter") {
      event.preventDefault();
      this.zoom(cursor);
    } else if (event.key === "Escape" || event.key === "Backspace") {
      event.preventDefault();
      this.zoom(this.focus.up ?? this.root);
    } else if (event.key === "Home") {
      event.preventDefault();
      this.zoom(this.root);
    } else if (event.key === "/") {
      event.preventDefault();
      find("flame-search").focus();
    }
  }
}
