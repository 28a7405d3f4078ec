// What lives at a moment, by call stack: the kept allocations one by one, all others as far as their stacks are told.

const OWN = 0, NATIVE = 2;  // what a place can be beside a library's, as src/view/scene.h has it
// Functions of libraries through which all calls go, of modules above all: they say nothing, even where many calls part in them.
const WRAPPERS = new Set(["__call__", "_call_impl", "_wrapped_call_impl", "_fn", "wrapper", "wrapped", "inner", "decorate_context"]);
// Of compiled code that no Python has called (backward, on threads of its own) the frames that say what it does.
const TELLING = /Backward\w*::apply|\bat::(_ops|native)::/;

class HeldStacks {
  constructor(model) {
    this.model = model;
    const { stacks, parents, stackPlace } = model;
    this.categories = model.groupings[0].groups;
    this.count = this.categories.length;
    this.kinds = Uint8Array.from(model.places, (place) => place[3] ?? OWN);
    // A node's children: the first, and from each the next. Callers come before those they call.
    this.first = new Uint32Array(stacks);
    this.next = new Uint32Array(stacks);
    this.leadsToPython = new Uint8Array(stacks);
    for (let at = stacks - 1; at > 0; at--) {
      const parent = parents[at];
      this.next[at] = this.first[parent];
      this.first[parent] = at;
      if (this.kinds[stackPlace[at]] !== NATIVE) this.leadsToPython[at] = 1;
      if (this.leadsToPython[at]) this.leadsToPython[parent] = 1;
    }
    this.parts = new Float64Array(stacks * this.count);
    this.bytes = new Float64Array(stacks);
  }

  // Bytes of every node of the stacks, by category, and with what it calls.
  take(event) {
    const { model, parts, bytes, count } = this, { stacks, parents, stack, born, died, size } = model, of = model.groupings[0].of;
    parts.fill(0);
    for (let at = 0; at < model.keptCount && born[at] <= event; at++) if (died[at] > event) parts[stack[at] * count + of[at]] += size[at];
    this.event = event;
    this.takeRest(event);
    // of the first node itself: what has no stack
    this.untold = parts.slice(0, count);
    for (let at = stacks - 1; at > 0; at--) for (let part = 0; part < count; part++) parts[parents[at] * count + part] += parts[at * count + part];
    for (let part = 0; part < count; part++) parts[part] += this.left[part];
    for (let at = 0; at < stacks; at++) {
      bytes[at] = 0;
      for (let part = 0; part < count; part++) bytes[at] += parts[at * count + part];
    }
  }

  // The column says how much it is of each category, the nearest of the told moments how that is divided.
  takeRest(event) {
    const { model, parts, count } = this, { rest } = model, column = model.columnOf(event);
    this.left = model.groupings[0].rest.slice(column * count, (column + 1) * count);
    this.isExact = model.allKept || model.peaks[column] === event;
    if (!rest.columns.length) return;
    let near = 0;
    for (let at = 1; at < rest.columns.length; at++) if (Math.abs(rest.columns[at] - column) < Math.abs(rest.columns[near] - column)) near = at;
    const whole = model.groupings[0].rest.subarray(rest.columns[near] * count), now = Float64Array.from(this.left), stacks = rest.node.length;
    this.isExact &&= rest.columns[near] === column;
    for (let at = 0; at < stacks; at++) {
      const part = rest.category[at], share = whole[part] > 0 ? Math.min(1, rest.bytes[near * stacks + at] / whole[part]) * now[part] : 0, taken = Math.min(share, this.left[part]);
      parts[rest.node[at] * count + part] += taken;
      this.left[part] -= taken;
    }
  }

  // Of compiled code without its arguments and outer namespaces, and without a file that is not known.
  nameOf(place) {
    const { model } = this, text = model.placeText(place) || "unknown";
    if (this.kinds[place] !== NATIVE) return text;
    const [file, , name] = model.places[place], plain = name.replace(/\(anonymous namespace\)::/g, "").replace(/\(.*/, ""), short = plain.includes("<") ? plain : plain.split("::").slice(-2).join("::");
    return short ? (/[^?]/.test(model.files[file]) ? text.replace(name, short) : short) : text;
  }

  live(node) {
    const found = [];
    for (let child = this.first[node]; child; child = this.next[child]) if (this.bytes[child] > 0) found.push(child);
    return found;
  }

  root() {
    return { name: "all of it", place: 0, nodes: [0], passed: [], up: null, bytes: this.bytes[0], parts: this.parts.subarray(0, this.count), depth: 0 };
  }

  // The frames below one in the picture, the largest first. Frames of libraries that only lead on are passed over, unless all are wanted; so is compiled code below Python's.
  below(frame, all) {
    if (frame.below) return frame.below;
    const found = new Map(), isUnderPython = frame.place > 0 && this.kinds[frame.place] !== NATIVE;
    for (const node of frame.nodes) for (const child of frame.isRest || frame.isEnd ? [] : this.live(node)) this.expand(child, isUnderPython, all, [], found);
    frame.below = [...found.values()];
    for (const made of frame.below) {
      made.parts = new Float64Array(this.count);
      for (const node of made.nodes) for (let part = 0; part < this.count; part++) made.parts[part] += this.parts[node * this.count + part];
      made.name = this.nameOf(made.place);
    }
    if (!frame.up) {
      frame.below.push({ name: "no call stack recorded", parts: this.untold, place: 0, nodes: [], passed: [], isRest: true });
      frame.below.push({ name: this.model.allKept ? "no allocation: mapped by hand" : "small ones, not kept one by one", parts: this.left, place: 0, nodes: [], passed: [], isRest: true });
    }
    for (const made of frame.below) {
      made.bytes = made.parts.reduce((sum, part) => sum + part, 0);
      made.up = frame;
      made.depth = frame.depth + 1;
    }
    frame.below = frame.below.filter((made) => made.bytes > 0).sort((a, b) => b.bytes - a.bytes);
    return frame.below;
  }

  expand(node, isUnderPython, all, passed, found) {
    const { model, kinds } = this, chain = [];
    let isEnd = false;
    for (; !all; ) {
      const place = model.stackPlace[node], kind = kinds[place];
      if (kind === OWN && place) break;
      if (kind === NATIVE && !this.leadsToPython[node] && isUnderPython) return;
      const children = this.live(node), inside = children.reduce((sum, child) => sum + this.bytes[child], 0);
      if (kind === NATIVE && this.leadsToPython[node] && children.length > 1) {
        for (const child of children) this.expand(child, isUnderPython, all, [...passed, place], found);
        return;
      }
      chain.push(node);
      if (!children.length) {
        isEnd = kind === NATIVE;
        if (isEnd) node = chain.find((one) => TELLING.test(model.places[model.stackPlace[one]][2])) ?? node;
        break;
      }
      if (this.bytes[node] - inside > 0.5 && !(kind === NATIVE && this.leadsToPython[node])) break;
      if (children.length > 1) {
        if (!WRAPPERS.has(model.places[place][2]) || !children.every((child) => this.leadsToPython[child])) break;
        for (const child of children) this.expand(child, true, all, [...passed, place], found);
        return;
      }
      if (kind !== NATIVE && !this.leadsToPython[children[0]]) break;  // the last that can be read
      passed.push(place);
      node = children[0];
    }
    const place = model.stackPlace[node], made = found.get(place);
    if (made) {
      made.nodes.push(node);
      for (const one of passed) made.passed.push(one);
      made.isEnd &&= isEnd;
    } else {
      found.set(place, { place, nodes: [node], passed, isEnd });
    }
  }

  // Bytes of all stacks with a place for which this holds, each counted once.
  bytesWith(matches) {
    const { model, bytes } = this, isInside = new Uint8Array(model.stacks);
    let sum = 0;
    for (let at = 1; at < model.stacks; at++) {
      isInside[at] = isInside[model.parents[at]];
      if (isInside[at] || !matches[model.stackPlace[at]]) continue;
      isInside[at] = 1;
      sum += bytes[at];
    }
    return sum;
  }
}
