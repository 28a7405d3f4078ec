// From the block in the page to numbers: base64, raw deflate, varints. The format is told in src/view/payload.h.

function bytesOfBase64(text) {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let at = 0; at < raw.length; at++) bytes[at] = raw.charCodeAt(at);
  return bytes;
}

// Browsers have a decompressor since about 2023; older ones get this one, slower.
async function inflated(bytes) {
  if (typeof DecompressionStream === "function") {
    try {
      const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
      return new Uint8Array(await new Response(stream).arrayBuffer());
    } catch (problem) {
      // one that does not know raw deflate
    }
  }
  return inflatedHere(bytes);
}

// RFC 1951.
function inflatedHere(bytes) {
  let out = new Uint8Array(bytes.length * 4 + 1024), length = 0, at = 0, hold = 0, held = 0;
  const bits = (count) => {
    while (held < count) {
      hold |= bytes[at++] << held;
      held += 8;
    }
    const value = hold & ((1 << count) - 1);
    hold >>>= count;
    held -= count;
    return value;
  };
  const put = (byte) => {
    if (length === out.length) {
      const larger = new Uint8Array(out.length * 2);
      larger.set(out);
      out = larger;
    }
    out[length++] = byte;
  };
  const tableOf = (lengths) => {
    const counts = new Uint16Array(16), starts = new Uint16Array(16), symbols = new Uint16Array(lengths.length);
    for (const size of lengths) counts[size]++;
    counts[0] = 0;
    for (let size = 1; size < 16; size++) starts[size] = starts[size - 1] + counts[size - 1];
    for (let symbol = 0; symbol < lengths.length; symbol++) if (lengths[symbol]) symbols[starts[lengths[symbol]]++] = symbol;
    return { counts, symbols };
  };
  const symbolOf = (table) => {
    let code = 0, first = 0, index = 0;
    for (let size = 1; size < 16; size++) {
      code |= bits(1);
      const count = table.counts[size];
      if (code - count < first) return table.symbols[index + (code - first)];
      index += count;
      first = (first + count) << 1;
      code <<= 1;
    }
    throw new Error("the page's block of numbers is damaged");
  };
  const lengthBase = [3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258];
  const lengthBits = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0];
  const distanceBase = [1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577];
  const distanceBits = [0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13];
  const order = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
  for (let last = 0; !last; ) {
    last = bits(1);
    const kind = bits(2);
    if (kind === 0) {
      hold = held = 0;
      let count = bytes[at] | (bytes[at + 1] << 8);
      for (at += 4; count > 0; count--) put(bytes[at++]);
      continue;
    }
    let literals, distances;
    if (kind === 1) {
      literals = tableOf(Uint8Array.from({ length: 288 }, (_, code) => (code < 144 ? 8 : code < 256 ? 9 : code < 280 ? 7 : 8)));
      distances = tableOf(new Uint8Array(30).fill(5));
    } else {
      const literalCount = bits(5) + 257, distanceCount = bits(5) + 1, codeCount = bits(4) + 4;
      const sizes = new Uint8Array(19), lengths = new Uint8Array(literalCount + distanceCount);
      for (let code = 0; code < codeCount; code++) sizes[order[code]] = bits(3);
      const codes = tableOf(sizes);
      for (let code = 0; code < lengths.length; ) {
        const symbol = symbolOf(codes);
        if (symbol < 16) lengths[code++] = symbol;
        else {
          const value = symbol === 16 ? lengths[code - 1] : 0;
          for (let times = symbol === 16 ? 3 + bits(2) : symbol === 17 ? 3 + bits(3) : 11 + bits(7); times > 0; times--) lengths[code++] = value;
        }
      }
      literals = tableOf(lengths.subarray(0, literalCount));
      distances = tableOf(lengths.subarray(literalCount));
    }
    for (let symbol = symbolOf(literals); symbol !== 256; symbol = symbolOf(literals)) {
      if (symbol < 256) {
        put(symbol);
        continue;
      }
      let count = lengthBase[symbol - 257] + bits(lengthBits[symbol - 257]);
      const code = symbolOf(distances);
      const back = distanceBase[code] + bits(distanceBits[code]);
      for (; count > 0; count--) put(out[length - back]);
    }
  }
  return out.subarray(0, length);
}

class Numbers {
  constructor(bytes, at) {
    this.bytes = bytes;
    this.at = at;
  }
  next() {
    let value = 0, scale = 1;
    for (;;) {
      const byte = this.bytes[this.at++];
      value += (byte & 0x7f) * scale;
      if (!(byte & 0x80)) return value;
      scale *= 128;
    }
  }
  signed() {
    const value = this.next();
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  }
  each(into, unit = 1) {
    for (let at = 0; at < into.length; at++) into[at] = this.next() * unit;
    return into;
  }
  // Each is the difference to the one before.
  run(into, unit = 1) {
    let value = 0;
    for (let at = 0; at < into.length; at++) {
      value += this.signed();
      into[at] = value * unit;
    }
    return into;
  }
}

const NEVER = 0xffffffff;

function endsOf(begins, lengths) {
  return lengths.map((length, at) => (length === 0 ? NEVER : begins[at] + length - 1));
}

function readScene(scene, numbers) {
  const unit = 2 ** scene.shift, addressUnit = 2 ** scene.addressShift, count = scene.columns;
  scene.columnCount = count;
  scene.peaks = numbers.each(new Uint32Array(count));
  for (let at = 0; at < count; at++) scene.peaks[at] += scene.first + at * scene.stretch;
  scene.low = numbers.run(new Float64Array(count), unit);
  scene.reserved = numbers.run(new Float64Array(count), unit);
  scene.times = scene.hasTimes ? numbers.run(new Float64Array(count)) : null;
  for (const grouping of scene.groupings) {
    const groups = grouping.groups.length, column = new Float64Array(count);
    grouping.bytes = new Float64Array(count * groups);
    for (let group = 0; group < groups; group++) {
      numbers.run(column, unit);
      for (let at = 0; at < count; at++) grouping.bytes[at * groups + group] = column[at];
    }
  }
  const kept = scene.allocations;
  scene.keptCount = kept;
  scene.born = numbers.run(new Uint32Array(kept));
  scene.died = endsOf(scene.born, numbers.each(new Uint32Array(kept)));
  const pending = numbers.each(new Uint32Array(kept));
  scene.returned = pending.map((after, at) => (after === 0 ? scene.died[at] : after === 1 ? NEVER : scene.died[at] + after - 1));
  scene.size = numbers.each(new Float64Array(kept), unit);
  scene.slack = numbers.run(new Float64Array(kept));
  scene.address = numbers.run(new Float64Array(kept), addressUnit);
  scene.stack = numbers.each(new Uint32Array(kept));
  scene.tensor = numbers.each(new Uint32Array(kept));
  for (const grouping of scene.groupings) grouping.of = numbers.each(new Uint8Array(kept));
  const segments = scene.segments;
  scene.segment = { address: numbers.run(new Float64Array(segments), addressUnit), size: numbers.each(new Float64Array(segments), unit), born: numbers.each(new Uint32Array(segments)) };
  scene.segment.gone = endsOf(scene.segment.born, numbers.each(new Uint32Array(segments)));
  scene.segment.kind = numbers.each(new Uint32Array(segments));
  scene.parents = numbers.each(new Uint32Array(scene.stacks));
  for (let at = 0; at < scene.stacks; at++) scene.parents[at] = at - scene.parents[at];
  scene.stackPlace = numbers.run(new Uint32Array(scene.stacks));
  scene.stackLine = numbers.run(new Uint32Array(scene.stacks));
  scene.laneCounts = scene.lanes.map(() => numbers.each(new Uint32Array(count * 4)));
  const calls = scene.calls;
  scene.call = { event: numbers.run(new Uint32Array(calls)), what: numbers.each(new Uint32Array(calls)), size: numbers.each(new Float64Array(calls)), text: numbers.each(new Uint32Array(calls)), stack: numbers.each(new Uint32Array(calls)) };
  const spans = scene.spans;
  scene.span = { begin: numbers.run(new Uint32Array(spans)), length: numbers.each(new Uint32Array(spans)), depth: numbers.each(new Uint32Array(spans)), text: numbers.each(new Uint32Array(spans)) };
  for (const replay of scene.whatIfs) replay.reserved = numbers.run(new Float64Array(count), unit);
  const told = scene.restColumns, restStacks = scene.restStacks, row = new Float64Array(told);
  scene.rest = { columns: numbers.run(new Uint32Array(told)), node: numbers.each(new Uint32Array(restStacks)), category: numbers.each(new Uint8Array(restStacks)), bytes: new Float64Array(told * restStacks) };
  for (let at = 0; at < restStacks; at++) numbers.run(row, unit).forEach((bytes, moment) => (scene.rest.bytes[moment * restStacks + at] = bytes));
  return scene;
}

async function readPayload(text) {
  const bytes = await inflated(bytesOfBase64(text));
  const numbers = new Numbers(bytes, 0);
  const length = numbers.next();
  const payload = JSON.parse(new TextDecoder().decode(bytes.subarray(numbers.at, numbers.at + length)));
  numbers.at += length;
  for (const scene of payload.scenes) readScene(scene, numbers);
  return payload;
}
