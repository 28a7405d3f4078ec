// The segments at one moment, end to end in rows: what lies in them, and what is free between.

class SegmentMap {
  constructor(canvas, told) {
    this.canvas = canvas;
    this.told = told;
    this.context = canvas.getContext("2d");
  }

  setModel(model, palette) {
    this.model = model;
    this.palette = palette;
  }

  // The segments that are there at the moment, each with the kept allocations in it, by address.
  picture(event) {
    const { model } = this, { address, size, born, gone, kind } = model.segment, segments = [];
    for (let at = 0; at < address.length; at++) {
      if (born[at] <= event && gone[at] > event) segments.push({ address: address[at], size: size[at], kind: kind[at], blocks: [] });
    }
    const live = [];
    for (let at = 0; at < model.keptCount && model.born[at] <= event; at++) if (model.returned[at] > event && model.address[at]) live.push(at);
    live.sort((a, b) => model.address[a] - model.address[b]);
    let segment = 0;
    for (const at of live) {
      while (segment < segments.length && model.address[at] >= segments[segment].address + segments[segment].size) segment++;
      if (segment === segments.length) break;
      if (model.address[at] >= segments[segment].address) segments[segment].blocks.push(at);
    }
    return segments;
  }

  draw(event) {
    const { model, context, canvas } = this, ratio = Math.min(window.devicePixelRatio || 1, 2), width = Math.max(canvas.clientWidth, 200);
    this.event = event;
    this.segments = this.picture(event);
    const reserved = this.segments.reduce((sum, segment) => sum + segment.size, 0);
    const rows = clamp(Math.ceil(this.segments.length / 12), 1, 14), height = rows * 20 + 2;
    canvas.style.height = height + "px";
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    this.scale = reserved ? (rows * width) / reserved : 0;
    this.width = width;
    const free = cssColour("--soft"), line = cssColour("--dim"), ink = cssColour("--ink");
    let from = 0, largest = 0, stuck = 0, live = 0;
    for (const segment of this.segments) {
      segment.from = from;
      this.strip(from, from + segment.size, free);
      let end = segment.address;
      for (const at of segment.blocks) {
        largest = Math.max(largest, model.address[at] - end);
        const start = from + model.address[at] - segment.address, stop = Math.min(start + model.size[at], from + segment.size);
        this.strip(start, stop, model.died[at] > event ? this.palette[model.grouping.of[at]].css : line, 3);
        live += stop - start;
        end = model.address[at] + model.size[at];
      }
      largest = Math.max(largest, segment.address + segment.size - end);
      if (segment.blocks.length) stuck += segment.size - segment.blocks.reduce((sum, at) => sum + model.size[at], 0);
      from += segment.size;
      this.strip(from - 0.8 / this.scale, from + 0.8 / this.scale, ink, 0);
    }
    this.tell(reserved, live, largest, stuck);
  }

  // A stretch of the rows, which wraps like text.
  strip(from, to, colour, inset = 1) {
    const { context, width, scale } = this;
    context.fillStyle = colour;
    for (let begin = from * scale, end = to * scale; begin < end; ) {
      const row = Math.floor(begin / width + 1e-9), stop = Math.min(end, (row + 1) * width);
      context.fillRect(begin - row * width, row * 20 + inset, Math.max(stop - begin, 0.4), 19 - 2 * inset);
      if (stop <= begin) break;
      begin = stop;
    }
  }

  tell(reserved, live, largest, stuck) {
    const { model } = this;
    const parts = [`${countText(this.segments.length)} segment${this.segments.length === 1 ? "" : "s"}, ${bytesText(reserved)}`];
    if (model.allKept && model.segments === model.segmentCount) {
      parts.push(`${bytesText(live)} in use`, `${bytesText(reserved - live)} free, the largest piece ${bytesText(largest)}`, `${bytesText(Math.max(0, stuck))} of it in segments that are in use, so it cannot be freed whole`);
    } else {
      parts.push(`${bytesText(live)} of it are allocations that are kept one by one; what is left blank is free or holds smaller ones`);
    }
    this.told.textContent = parts.join("; ") + ".";
    this.canvas.setAttribute("aria-label", "Segments at the chosen moment: " + this.told.textContent);
  }

  // By keys, from block to block in the order of their addresses.
  step(by) {
    const blocks = (this.segments ?? []).flatMap((segment) => segment.blocks);
    if (!blocks.length) return null;
    const at = blocks.indexOf(this.current), next = at < 0 ? (by > 0 ? 0 : blocks.length - 1) : clamp(at + by, 0, blocks.length - 1);
    this.current = blocks[next];
    return { allocation: this.current };
  }

  at(x, y) {
    if (!this.segments || !this.scale) return null;
    const { model } = this, bytes = (Math.floor(y / 20) * this.width + x) / this.scale;
    for (const segment of this.segments) {
      if (bytes < segment.from || bytes >= segment.from + segment.size) continue;
      const address = segment.address + bytes - segment.from;
      const at = segment.blocks.find((block) => model.address[block] <= address && address < model.address[block] + model.size[block]);
      if (at !== undefined) return { allocation: at };
      return { title: model.allKept ? "free" : "free, or smaller allocations", lines: [`in a segment of ${bytesText(segment.size)} at 0x${segment.address.toString(16)}`, segment.kind & 1 ? "mapped piece by piece (expandable)" : ""].filter(Boolean) };
    }
    return null;
  }
}
