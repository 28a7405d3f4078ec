// Under the chart, on the same axis: what the program marked, and launches, copies, sets and waits of each stream.

const LANE = { height: 18, gap: 3 };
const CALL_WORDS = ["launch", "copy", "set", "wait"];
const CALL_COLOURS = ["--c0", "--c6", "--c2", "--c5"];

class Lanes {
  constructor(canvas, chart) {
    this.canvas = canvas;
    this.chart = chart;
    this.context = canvas.getContext("2d");
  }

  setModel(model) {
    this.model = model;
    this.depths = model.spans ? Math.min(4, 1 + model.span.depth.reduce((most, depth) => Math.max(most, depth), 0)) : 0;
    this.canvas.hidden = this.depths + model.lanes.length === 0;
    this.height = (this.depths + model.lanes.length) * (LANE.height + LANE.gap) + 4;
    this.canvas.style.height = this.height + "px";
    const kinds = CALL_WORDS.map((word, kind) => [word, model.laneCounts.reduce((sum, counts) => sum + counts.reduce((all, count, at) => all + (at % 4 === kind ? count : 0), 0), 0)]);
    this.current = -1;
    this.kinds = kinds.flatMap(([word, count], kind) => (count ? [[word, CALL_COLOURS[kind], count]] : []));
    this.canvas.setAttribute("aria-label", "Calls by stream: " + kinds.filter(([, count]) => count).map(([word, count]) => countText(count) + " × " + word).join(", ") + (model.spans ? `; ${countText(model.spanCount)} marked spans` : ""));
  }

  draw() {
    if (!this.model || this.canvas.hidden) return;
    const { context, chart, model } = this, ratio = chart.ratio, width = chart.width;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, this.height);
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    this.drawSpans();
    for (let lane = 0; lane < model.lanes.length; lane++) this.drawLane(lane);
  }

  label(text, y) {
    const { context } = this;
    context.fillStyle = cssColour("--dim");
    context.textAlign = "right";
    text = text.replace(/ ?stream ?/, "");
    context.fillText(text.length > 13 ? text.slice(0, 12) + "…" : text, MARGIN.left - 6, y + LANE.height / 2);
  }

  drawSpans() {
    const { context, chart, model } = this;
    if (!this.depths) return;
    this.label("marked", 0);
    const fill = cssColour("--soft"), line = cssColour("--dim"), ink = cssColour("--ink");
    context.textAlign = "left";
    context.strokeStyle = line;
    for (let at = 0; at < model.spans; at++) {
      const begin = model.span.begin[at], end = begin + model.span.length[at], depth = model.span.depth[at];
      if (end < chart.view.from || begin > chart.view.to || depth >= this.depths) continue;
      const left = Math.max(chart.xOf(begin), MARGIN.left), right = Math.min(chart.xOf(end), chart.width - MARGIN.right), y = depth * (LANE.height + LANE.gap);
      context.fillStyle = right - left >= 3 ? fill : line;
      if (right - left >= 3) context.fillRect(left, y, right - left, LANE.height);
      if (right - left >= 3) context.strokeRect(left + 0.5, y + 0.5, right - left - 1, LANE.height - 1);
      else context.fillRect(left, y, 1, LANE.height);
      if (right - left < 30) continue;
      context.save();
      context.beginPath();
      context.rect(left, y, right - left - 3, LANE.height);
      context.clip();
      context.fillStyle = ink;
      context.fillText(model.texts[model.span.text[at]], left + 4, y + LANE.height / 2);
      context.restore();
    }
  }

  yOf(lane) {
    return (this.depths + lane) * (LANE.height + LANE.gap);
  }

  // How busy the stream was, by kind of call; where the picture is finer than the columns, the calls that are kept.
  drawLane(lane) {
    const { context, chart, model } = this, y = this.yOf(lane), counts = model.laneCounts[lane], colours = CALL_COLOURS.map(cssColour);
    this.label(model.lanes[lane], y);
    context.fillStyle = cssColour("--soft");
    context.fillRect(MARGIN.left, y, chart.width - MARGIN.left - MARGIN.right, LANE.height);
    const step = (chart.view.to - chart.view.from) / (chart.width - MARGIN.left - MARGIN.right);
    if (step >= model.stretch) {
      for (let x = MARGIN.left; x < chart.width - MARGIN.right; x++) {
        const from = model.columnOf(chart.eventAt(x)), to = Math.max(from + 1, model.columnOf(chart.eventAt(x + 1))), sums = [0, 0, 0, 0];
        for (let column = from; column < to; column++) for (let kind = 0; kind < 4; kind++) sums[kind] += counts[column * 4 + kind];
        let top = y + LANE.height;
        const all = sums[0] + sums[1] + sums[2] + sums[3];
        if (!all) continue;
        const height = Math.max(3, LANE.height * clamp(Math.log2(1 + all) / Math.log2(1 + Math.max(2, step)), 0, 1));
        for (let kind = 0; kind < 4; kind++) {
          const part = (height * sums[kind]) / all;
          context.fillStyle = colours[kind];
          context.fillRect(x, top - part, 1, part);
          top -= part;
        }
      }
      return;
    }
    const { event, what } = model.call, width = clamp(1 / step - 1, 1, 14);
    for (let at = 0; at < model.calls; at++) {
      if (what[at] >> 3 !== lane || event[at] < chart.view.from - 1 || event[at] > chart.view.to) continue;
      const kind = (what[at] >> 1) & 3, x = chart.xOf(event[at]);
      if (x < MARGIN.left) continue;
      context.fillStyle = what[at] & 1 ? cssColour("--error") : colours[kind];
      const height = [LANE.height, LANE.height * 0.75, LANE.height * 0.5, LANE.height * 0.3][kind];  // told apart without colours
      context.fillRect(x, y + LANE.height - height, Math.min(width, chart.width - MARGIN.right - x), height);
    }
  }

  // By keys, from call to call in their order: what it is, and where it is in the picture.
  step(by) {
    const { model } = this;
    if (!model.calls) return null;
    this.current = clamp(this.current + by, 0, model.calls - 1);
    return { ...this.toldOf(this.current), call: this.current };
  }

  toldOf(at) {
    const { model } = this, lane = model.call.what[at] >> 3;
    const lines = [model.lanes[lane] + ", event " + countText(model.call.event[at])];
    if (model.call.size[at]) lines.push(bytesText(model.call.size[at]));
    if (model.call.what[at] & 1) lines.push("it failed");
    const stack = model.call.stack[at], place = model.placeText(model.stackLine[stack] || model.stackPlace[stack]);
    if (place) lines.push(place);
    return { title: model.texts[model.call.text[at]] || CALL_WORDS[(model.call.what[at] >> 1) & 3], lines, event: model.call.event[at] };
  }

  // What the pointer is on, in words: the call, or how many.
  at(x, y) {
    const { chart, model } = this, lane = Math.floor(y / (LANE.height + LANE.gap)) - this.depths, event = chart.eventAt(x), near = (chart.view.to - chart.view.from) / chart.width;
    if (lane < 0) {
      for (let at = 0; at < model.spans; at++) {
        const begin = model.span.begin[at];
        if (model.span.depth[at] === lane + this.depths && begin <= event && event < begin + model.span.length[at]) return { title: model.texts[model.span.text[at]], lines: [countText(model.span.length[at]) + " events"] };
      }
      return null;
    }
    if (lane >= model.lanes.length) return null;
    let best = -1;
    for (let at = 0; at < model.calls; at++) {
      if (model.call.what[at] >> 3 !== lane) continue;
      if (best < 0 || Math.abs(model.call.event[at] + 0.5 - event) < Math.abs(model.call.event[best] + 0.5 - event)) best = at;
    }
    const isNear = best >= 0 && Math.abs(model.call.event[best] + 0.5 - event) <= Math.max(1, 4 * near);
    if (!isNear) return null;
    return this.toldOf(best);
  }
}
