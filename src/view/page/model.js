// What can be asked of a scene: which column stands for a stretch, what was held at a moment, which allocations lie where.

const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
function bytesText(bytes) {
  let unit = 0, value = Math.abs(bytes);
  while (value >= 1024 && unit + 1 < units.length) {
    value /= 1024;
    unit++;
  }
  return (bytes < 0 ? "-" : "") + (unit === 0 ? value.toFixed(0) : value.toFixed(2)) + " " + units[unit];
}
const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
const shareText = (part, all) => (all ? ((100 * part) / all).toFixed(1) + " %" : "");
const countText = (count) => count.toLocaleString("en-US");
function timeText(us) {
  const value = Math.abs(us), sign = us < 0 ? "-" : "";
  if (value < 1000) return sign + value.toFixed(0) + " µs";
  if (value < 1e6) return sign + (value / 1e3).toFixed(2) + " ms";
  if (value < 6e7) return sign + (value / 1e6).toFixed(2) + " s";
  return sign + Math.floor(value / 6e7) + " min " + Math.round((value % 6e7) / 1e6) + " s";
}
const clamp = (value, least, most) => Math.min(Math.max(value, least), most);

class Model {
  constructor(scene) {
    Object.assign(this, scene);
    this.last = this.first + this.events;
    this.allKept = this.keptCount === this.allocationCount;
    const groups = this.groupings[0].groups.length, totals = new Float64Array(this.columnCount);
    for (let column = 0; column < this.columnCount; column++) {
      for (let group = 0; group < groups; group++) totals[column] += this.groupings[0].bytes[column * groups + group];
    }
    this.totals = totals;
    // Of every two columns, four, eight and so on: which is the highest.
    this.highest = [Uint32Array.from(totals, (_, column) => column)];
    while (this.highest.at(-1).length > 1) {
      const below = this.highest.at(-1), level = new Uint32Array(Math.ceil(below.length / 2));
      for (let at = 0; at < level.length; at++) {
        const left = below[2 * at], right = 2 * at + 1 < below.length ? below[2 * at + 1] : left;
        level[at] = totals[right] > totals[left] ? right : left;
      }
      this.highest.push(level);
    }
    this.mostReserved = this.reserved.reduce((most, bytes) => Math.max(most, bytes), 0);
    this.chooseGrouping(0);
  }

  // Where all memory is of one category, its lines say more.
  tellingGrouping() {
    const { bytes, groups } = this.groupings[0], column = this.columnOf(this.peakEvent) * groups.length;
    const told = groups.filter((_, group) => bytes[column + group] > 0).length;
    return told < 2 && this.groupings.length > 1 ? 1 : 0;
  }

  chooseGrouping(index) {
    const grouping = this.groupings[index];
    this.grouping = grouping;
    this.groupCount = grouping.groups.length;
    if (grouping.order) return;
    // The kept allocations by group, the older first: the order in which they lie upon each other.
    const starts = new Uint32Array(this.groupCount + 1);
    for (let at = 0; at < this.keptCount; at++) starts[grouping.of[at] + 1]++;
    for (let group = 0; group < this.groupCount; group++) starts[group + 1] += starts[group];
    grouping.order = new Uint32Array(this.keptCount);
    for (let at = 0; at < this.keptCount; at++) grouping.order[starts[grouping.of[at]]++] = at;
    grouping.rest = this.restOf(grouping);
  }

  // What each group holds at each column's moment beside the allocations that are kept.
  restOf(grouping) {
    const count = this.groupCount, rest = Float64Array.from(grouping.bytes);
    const change = new Float64Array((this.columnCount + 1) * count);
    for (let at = 0; at < this.keptCount; at++) {
      const group = grouping.of[at];
      change[this.columnFrom(this.born[at]) * count + group] += this.size[at];
      change[this.columnFrom(this.died[at]) * count + group] -= this.size[at];
    }
    const now = new Float64Array(count);
    for (let column = 0; column < this.columnCount; column++) {
      for (let group = 0; group < count; group++) {
        now[group] += change[column * count + group];
        rest[column * count + group] = Math.max(0, rest[column * count + group] - now[group]);
      }
    }
    return rest;
  }

  columnOf(event) {
    return clamp(Math.floor((event - this.first) / this.stretch), 0, this.columnCount - 1);
  }
  // The first column whose moment is not before the event.
  columnFrom(event) {
    if (event <= this.first) return 0;
    if (event >= this.last) return this.columnCount;
    const column = this.columnOf(event);
    return this.peaks[column] >= event ? column : column + 1;
  }
  // The highest of the columns from one to before another.
  highestOf(from, to) {
    let best = from, at = from;
    while (at < to) {
      let level = 0;
      while (level + 1 < this.highest.length && at % 2 ** (level + 1) === 0 && at + 2 ** (level + 1) <= to) level++;
      const column = this.highest[level][at / 2 ** level];
      if (this.totals[column] > this.totals[best]) best = column;
      at += 2 ** level;
    }
    return best;
  }

  timeAt(event) {
    if (!this.times) return null;
    const column = this.columnOf(event), here = this.peaks[column], other = clamp(event > here ? column + 1 : column - 1, 0, this.columnCount - 1);
    const there = this.peaks[other];
    if (here === event || here === there) return this.times[column];
    return this.times[column] + ((this.times[other] - this.times[column]) * (event - here)) / (there - here);
  }
  sinceStart(event) {
    const time = this.timeAt(event);
    return time === null ? null : time - this.times[0];
  }

  // Bytes of each group right after the event. Between the moments of columns only the kept allocations are known; what is beside them is that of the column.
  groupsAt(event) {
    const column = this.columnOf(event), count = this.groupCount, bytes = new Float64Array(count);
    const isExact = this.peaks[column] === event || this.allKept;
    if (this.peaks[column] === event) {
      for (let group = 0; group < count; group++) bytes[group] = this.grouping.bytes[column * count + group];
      return { bytes, isExact };
    }
    for (let group = 0; group < count; group++) bytes[group] = this.grouping.rest[column * count + group];
    for (let at = 0; at < this.keptCount && this.born[at] <= event; at++) {
      if (this.died[at] > event) bytes[this.grouping.of[at]] += this.size[at];
    }
    return { bytes, isExact };
  }

  // The kept allocation that lies at so many bytes of the stack at a moment: -1 where it is none, with the group. Those of at least so many bytes lie below the others.
  at(event, bytes, least) {
    const groups = this.groupsAt(event).bytes;
    let from = 0, group = 0;
    while (group < groups.length && bytes >= from + groups[group]) from += groups[group++];
    if (group === groups.length || bytes < 0) return { group: -1, allocation: -1 };
    for (const isLarge of [true, false]) {
      for (const at of this.grouping.order) {
        if (this.grouping.of[at] !== group || this.born[at] > event || this.died[at] <= event || this.size[at] >= least !== isLarge) continue;
        from += this.size[at];
        if (bytes < from) return { group, allocation: at };
      }
    }
    return { group, allocation: -1 };
  }

  largestAt(event) {
    let best = -1;
    for (let at = 0; at < this.keptCount && this.born[at] <= event; at++) {
      if (this.died[at] > event && (best < 0 || this.size[at] > this.size[best])) best = at;
    }
    return best;
  }

  placeText(place, short = true) {
    if (!place) return "";
    const [file, line, name] = this.places[place], path = this.files[file];
    if (!path) return name;
    return (short ? path.slice(path.lastIndexOf("/") + 1) : path) + (line ? ":" + line : "") + (name ? " in " + name : "");
  }
  lineOf(allocation) {
    return this.stackLine[this.stack[allocation]] || this.stackPlace[this.stack[allocation]] || 0;
  }
  framesOf(stack) {
    const frames = [];
    for (; stack; stack = this.parents[stack]) frames.push(this.stackPlace[stack]);
    return frames;
  }
}
