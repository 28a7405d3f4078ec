// The picture of memory over time. It is painted pixel by pixel into an image, each column of pixels for one moment of the recording: the cost of a frame is bounded by
// the size of the picture and the number of kept allocations, whatever the number of events.

const MARGIN = { left: 76, right: 12, top: 10, bottom: 24 };
const COLOURS = [0, 1, 2, 3, 4, 6, 7];  // of the style sheet; the fifth is the grey of what is left over. Behind the last they come again, hatched

function cssColour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
function rgbOf(text) {
  const hex = parseInt(text.slice(1), 16);
  return [(hex >> 16) & 255, (hex >> 8) & 255, hex & 255];
}
const packed = ([red, green, blue]) => ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
const shaded = (rgb, by) => rgb.map((part) => clamp(Math.round(part + (by < 0 ? part : 255 - part) * by), 0, 255));

// Every group's colours: plain, of every other allocation, and of the lines between allocations.
const paletteOf = (model) => groupPalette(model.groupCount);
function groupPalette(count) {
  const rest = count - 1;
  return Array.from({ length: count }, (_, group) => {
    const rgb = rgbOf(cssColour(group === rest ? "--rest" : "--c" + COLOURS[group % COLOURS.length]));
    return { plain: packed(rgb), other: packed(shaded(rgb, 0.14)), edge: packed(shaded(rgb, -0.38)), hatched: group >= COLOURS.length && group !== rest, css: `rgb(${rgb})`, ink: rgb[0] * 0.3 + rgb[1] * 0.59 + rgb[2] * 0.11 > 125 ? "#14181d" : "#ffffff" };
  });
}

class Chart {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
  }

  setModel(model) {
    this.model = model;
    this.replay = null;
    this.whole();
    this.recolour();
  }
  // The replay that is drawn beside what was recorded; null: none.
  setReplay(replay) {
    this.replay = replay;
    this.whole();
  }
  recolour() {
    this.palette = paletteOf(this.model);
    this.ink = cssColour("--ink");
    this.dim = cssColour("--dim");
    this.grid = cssColour("--line");
    this.paper = packed(rgbOf(cssColour("--paper")));
  }
  get mostBytes() {
    return Math.max(this.model.peak, this.model.mostReserved, this.replay ? this.replay.peak : 0, 1) * 1.06;
  }
  whole() {
    this.view = { from: this.model.first, to: this.model.last, low: 0, high: this.mostBytes };
  }
  // Keeps the view inside what there is to see.
  setView(from, to, low = this.view.low, high = this.view.high) {
    const { first, last, events } = this.model;
    const length = clamp(to - from, Math.min(8, events), events), start = clamp(from, first, last - length);
    const height = clamp(high - low, Math.min(4096, this.mostBytes), this.mostBytes), bottom = clamp(low, 0, this.mostBytes - height);
    this.view = { from: start, to: start + length, low: bottom, high: bottom + height };
  }
  zoom(factor, around = (this.view.from + this.view.to) / 2) {
    const { from, to } = this.view;
    this.setView(around - (around - from) * factor, around + (to - around) * factor);
  }
  zoomBytes(factor, around = this.view.low) {
    const { from, to, low, high } = this.view;
    this.setView(from, to, around - (around - low) * factor, around + (high - around) * factor);
  }

  resize() {
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    const width = Math.max(this.canvas.clientWidth, 200), height = Math.max(this.canvas.clientHeight, 160);
    if (this.ratio === ratio && this.width === width && this.height === height) return;
    Object.assign(this, { ratio, width, height });
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.columns = Math.max(1, Math.round((width - MARGIN.left - MARGIN.right) * ratio));
    this.rows = Math.max(1, Math.round((height - MARGIN.top - MARGIN.bottom) * ratio));
    this.image = this.context.createImageData(this.columns, this.rows);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.moments = new Float64Array(this.columns);
    this.columnAt = new Int32Array(this.columns);
  }

  // Pixels of the page to the recording and back.
  eventAt(x) {
    return this.view.from + ((x - MARGIN.left) / (this.width - MARGIN.left - MARGIN.right)) * (this.view.to - this.view.from);
  }
  xOf(event) {
    return MARGIN.left + ((event - this.view.from) / (this.view.to - this.view.from)) * (this.width - MARGIN.left - MARGIN.right);
  }
  bytesAt(y) {
    return this.view.low + ((this.height - MARGIN.bottom - y) / (this.height - MARGIN.top - MARGIN.bottom)) * (this.view.high - this.view.low);
  }
  yOf(bytes) {
    return this.height - MARGIN.bottom - ((bytes - this.view.low) / (this.view.high - this.view.low)) * (this.height - MARGIN.top - MARGIN.bottom);
  }
  // The moment that is shown where the pointer is.
  momentAt(x) {
    const column = clamp(Math.floor((x - MARGIN.left) * this.ratio), 0, this.columns - 1);
    return this.moments[column];
  }

  // Zeros to work in, the same from frame to frame: what is made anew in every frame has to be cleared away in some.
  room(name, length) {
    this.rooms ??= {};
    if (this.rooms[name]?.length !== length) this.rooms[name] = new Float64Array(length);
    return this.rooms[name].fill(0);
  }

  chooseMoments() {
    const { model, view, columns } = this, step = (view.to - view.from) / columns, isFine = step < model.stretch && model.stretch > 1;
    for (let x = 0; x < columns; x++) {
      const from = view.from + x * step;
      if (isFine || step <= 1) {
        this.moments[x] = clamp(Math.floor(from), model.first, model.last - 1);
        this.columnAt[x] = model.columnOf(this.moments[x]);
      } else {
        const low = model.columnOf(from), high = Math.max(low + 1, model.columnOf(from + step));
        this.columnAt[x] = model.highestOf(low, high);
        this.moments[x] = model.peaks[this.columnAt[x]];
      }
    }
    return isFine;
  }
  // The pixel from which on an event has happened.
  pixelOf(event) {
    const { view, moments, columns } = this;
    let x = clamp(Math.floor(((event - view.from) / (view.to - view.from)) * columns), 0, columns);
    while (x > 0 && moments[x - 1] >= event) x--;
    while (x < columns && moments[x] < event) x++;
    return x;
  }

  // Bytes of each group in each column of pixels.
  stackGroups(isFine) {
    const { model, columns } = this, count = model.groupCount, bytes = isFine ? model.grouping.rest : model.grouping.bytes;
    const stacked = this.room("stacked", columns * count);
    for (let x = 0; x < columns; x++) {
      const column = this.columnAt[x] * count;
      for (let group = 0; group < count; group++) stacked[x * count + group] = bytes[column + group];
    }
    if (!isFine) return stacked;
    const change = this.room("change", (columns + 1) * count), { born, died, size } = model, of = model.grouping.of;
    const first = this.moments[0], last = this.moments[columns - 1];
    for (let at = 0; at < model.keptCount; at++) {
      if (born[at] > last || died[at] <= first) continue;
      change[this.pixelOf(born[at]) * count + of[at]] += size[at];
      change[this.pixelOf(died[at]) * count + of[at]] -= size[at];
    }
    for (let group = 0; group < count; group++) {
      for (let x = 0, now = 0; x < columns; x++) stacked[x * count + group] += now += change[x * count + group];
    }
    return stacked;
  }

  draw() {
    if (!this.model) return;
    this.resize();
    const { model, view, columns, rows, pixels, context } = this, count = model.groupCount;
    const isFine = this.chooseMoments(), stacked = this.stackGroups(isFine), scale = rows / (view.high - view.low);
    const row = (bytes) => rows - (bytes - view.low) * scale;
    pixels.fill(this.paper);
    const base = this.room("base", columns);
    for (let x = 0; x < columns; x++) {
      let from = rows - (0 - view.low) * scale;
      for (let group = 0; group < count; group++) {
        const bytes = stacked[x * count + group];
        if (bytes <= 0) continue;
        const to = from - bytes * scale;
        this.fill(x, to, from, this.palette[group]);
        from = to;
      }
    }
    this.paintAllocations(stacked, base, scale, row);
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    context.putImageData(this.image, Math.round(MARGIN.left * this.ratio), Math.round(MARGIN.top * this.ratio));
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    this.drawLines();
    this.drawAxes();
    this.drawLabels(stacked);
  }

  fill(x, top, bottom, colours) {
    const { columns, rows, pixels } = this, from = Math.max(0, Math.round(top)), to = Math.min(rows, Math.round(bottom));
    if (!colours.hatched) {
      for (let at = from * columns + x, end = to * columns + x; at < end; at += columns) pixels[at] = colours.plain;
    } else {
      for (let y = from; y < to; y++) pixels[y * columns + x] = (x + y) % 8 < 2 ? colours.edge : colours.plain;
    }
  }

  // Single allocations on their group, the older below: those of about a pixel or more.
  paintAllocations(stacked, base, scale, row) {
    const { model, columns, rows, pixels } = this, count = model.groupCount, { born, died, size } = model, of = model.grouping.of;
    const first = this.moments[0], last = this.moments[columns - 1], least = 1 / scale, shortest = (0.8 * (this.view.to - this.view.from)) / columns;
    let group = -1;
    for (let number = 0; number < model.keptCount; number++) {
      const at = model.grouping.order[number];
      if (size[at] < least || died[at] - born[at] < shortest || born[at] > last || died[at] <= first) continue;
      while (group < of[at]) {
        if (group >= 0) for (let x = 0; x < columns; x++) base[x] = this.top[x];
        else this.top = this.room("top", columns);
        group++;
        for (let x = 0; x < columns; x++) this.top[x] = base[x] + stacked[x * count + group];
      }
      const from = this.pixelOf(born[at]), to = this.pixelOf(died[at]);
      if (to <= from) continue;
      const colours = this.palette[group], body = number % 2 ? colours.other : colours.plain, isWide = to - from > 3;
      for (let x = from; x < to; x++) {
        const bottom = base[x], top = (base[x] = bottom + size[at]);
        const low = Math.min(rows, Math.round(row(bottom))), high = Math.max(0, Math.round(row(top)));
        if (low <= 0 || high >= rows || low <= high) continue;
        const hasEdge = low - high >= 4, isBorder = isWide && hasEdge && (x === from || x === to - 1);
        if (hasEdge && !isBorder) pixels[high * columns + x] = colours.edge;
        for (let y = hasEdge && !isBorder ? high + 1 : high; y < low; y++) {
          pixels[y * columns + x] = isBorder || (colours.hatched && (x + y) % 8 < 2) ? colours.edge : body;
        }
      }
    }
  }

  drawLines() {
    const { context, model } = this, right = this.width - MARGIN.right;
    context.save();
    context.beginPath();
    context.rect(MARGIN.left, MARGIN.top, right - MARGIN.left, this.height - MARGIN.top - MARGIN.bottom);
    context.clip();
    context.lineWidth = 1.5;
    context.strokeStyle = cssColour("--reserved");
    context.beginPath();
    for (let x = 0; x < this.columns; x++) context.lineTo(MARGIN.left + x / this.ratio, this.yOf(model.reserved[this.columnAt[x]]));
    context.stroke();
    if (this.replay) this.drawReplay();
    this.drawLow();
    context.setLineDash([6, 4]);
    context.strokeStyle = cssColour("--limit");
    for (const limit of [model.capacity, model.allowed]) {
      if (!limit) continue;
      context.beginPath();
      context.moveTo(MARGIN.left, this.yOf(limit));
      context.lineTo(right, this.yOf(limit));
      context.stroke();
    }
    const inView = ([event]) => event >= this.view.from && event <= this.view.to, steps = model.marks.filter((mark) => mark[1] === "step" && inView(mark)).length;
    for (const [event, kind] of model.marks) {
      if (event < this.view.from || event > this.view.to || (kind === "step" && steps > this.width / 16)) continue;
      context.setLineDash(kind === "step" ? [2, 4] : []);
      context.strokeStyle = cssColour(kind === "step" ? "--dim" : "--error");
      context.lineWidth = kind === "step" ? 0.7 : 1.5;
      context.beginPath();
      context.moveTo(this.xOf(event + 0.5), MARGIN.top);
      context.lineTo(this.xOf(event + 0.5), this.height - MARGIN.bottom);
      context.stroke();
    }
    context.restore();
  }

  // What the chosen replay has reserved, of each column of pixels the most, on a lighter line so that it is seen on any colour.
  drawReplay() {
    const { context, model, view } = this, step = (view.to - view.from) / this.columns, { reserved } = this.replay;
    const path = new Path2D();
    for (let x = 0; x < this.columns; x++) {
      const from = model.columnOf(view.from + x * step), to = Math.max(from + 1, model.columnOf(view.from + (x + 1) * step));
      let most = reserved[from];
      for (let column = from + 1; column < to; column++) most = Math.max(most, reserved[column]);
      path.lineTo(MARGIN.left + x / this.ratio, this.yOf(most));
    }
    context.save();
    context.strokeStyle = cssColour("--paper");
    context.lineWidth = 5;
    context.stroke(path);
    context.strokeStyle = cssColour("--c6");
    context.lineWidth = 2.5;
    context.setLineDash([9, 3]);
    context.stroke(path);
    context.restore();
  }

  // How low it was between the highest moments, where a pixel stands for several.
  drawLow() {
    const { context, model, view } = this, step = (view.to - view.from) / this.columns;
    if (step <= 1 || step < model.stretch) return;
    context.strokeStyle = cssColour("--paper");
    context.lineWidth = 1.2;
    context.beginPath();
    for (let x = 0; x < this.columns; x++) {
      const from = model.columnOf(view.from + x * step), to = Math.max(from + 1, model.columnOf(view.from + (x + 1) * step));
      let low = model.low[from];
      for (let column = from + 1; column < to; column++) low = Math.min(low, model.low[column]);
      context.lineTo(MARGIN.left + x / this.ratio, this.yOf(low));
    }
    context.stroke();
  }

  drawAxes() {
    const { context, view, model } = this, bottom = this.height - MARGIN.bottom;
    context.font = "12px system-ui, sans-serif";
    context.fillStyle = this.dim;
    context.strokeStyle = this.grid;
    context.lineWidth = 1;
    context.textAlign = "right";
    context.textBaseline = "middle";
    const step = 2 ** Math.ceil(Math.log2((view.high - view.low) / 7));
    for (let bytes = Math.ceil(view.low / step) * step; bytes <= view.high; bytes += step) {
      const y = this.yOf(bytes);
      if (y < MARGIN.top) break;
      context.fillText(bytes === 0 ? "0" : bytesText(bytes).replace(".00", ""), MARGIN.left - 6, y);
      context.beginPath();
      context.moveTo(MARGIN.left - 3, y);
      context.lineTo(MARGIN.left, y);
      context.stroke();
    }
    context.textBaseline = "top";
    context.textAlign = "left";
    const ticks = Math.max(2, Math.floor((this.width - MARGIN.left) / 130));
    const start = model.sinceStart(Math.round(view.from));
    let free = MARGIN.left;
    for (let tick = 0; tick <= ticks; tick++) {
      const event = Math.min(model.last - 1, Math.round(view.from + ((view.to - view.from) * tick) / ticks)), time = model.sinceStart(event);
      const text = (tick === 0 ? "event " : "") + countText(event) + (time === null ? "" : " · " + (tick === 0 ? timeText(time) : "+" + timeText(time - start))), width = context.measureText(text).width;
      const x = Math.min(Math.max(this.xOf(event) - (tick === 0 ? 0 : width / 2), MARGIN.left), this.width - width - 2);
      if (x < free) continue;
      context.fillText(text, x, bottom + 6);
      free = x + width + 14;
    }
    context.strokeRect(MARGIN.left - 0.5, MARGIN.top - 0.5, this.width - MARGIN.left - MARGIN.right + 1, bottom - MARGIN.top + 1);
  }

  // Names stand in the picture too, so that nobody has to tell colours apart.
  drawLabels(stacked) {
    const { model, columns, context } = this, count = model.groupCount;
    context.font = "600 12px system-ui, sans-serif";
    context.textAlign = "center";
    context.textBaseline = "middle";
    const taken = [];
    for (let group = 0; group < count; group++) {
      // in the middle of the longest stretch where the band is nearly as high as it gets
      const heights = this.room("heights", columns), middles = this.room("middles", columns);
      let most = 0;
      for (let x = 0; x < columns; x += 4) {
        let from = 0;
        for (let below = 0; below < group; below++) from += stacked[x * count + below];
        const top = Math.max(this.yOf(from + stacked[x * count + group]), MARGIN.top), bottom = Math.min(this.yOf(from), this.height - MARGIN.bottom);
        heights[x] = bottom - top;
        middles[x] = (top + bottom) / 2;
        most = Math.max(most, heights[x]);
      }
      if (most < 16) continue;
      let best = 0, longest = 0;
      for (let x = 0, length = 0; x < columns; x += 4) {
        length = heights[x] >= 0.75 * most ? length + 4 : 0;
        if (length > longest) [longest, best] = [length, x - ((length >> 3) << 2)];
      }
      const middle = middles[best];
      const name = model.grouping.groups[group], text = name.length > 40 ? name.slice(0, 39) + "…" : name, x = MARGIN.left + best / this.ratio;
      const width = context.measureText(text).width + 10, left = clamp(x - width / 2, MARGIN.left + 2, this.width - MARGIN.right - width - 2);
      if (taken.some((other) => left < other.right && other.left < left + width && Math.abs(other.middle - middle) < 17)) continue;
      taken.push({ left, right: left + width, middle });
      context.fillStyle = this.palette[group].css;
      context.fillRect(left, middle - 8, width, 16);
      context.fillStyle = this.palette[group].ink;
      context.fillText(text, left + width / 2, middle);
    }
  }
}
