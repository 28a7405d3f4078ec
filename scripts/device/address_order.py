"""Where does cudaMalloc put a segment? Scores possible policies against recordings of real programs.

  python address_order.py RECORDING...

A recording is a PyTorch memory snapshot (.pickle, .pickle.xz) or a file of scripts/plan_accuracy/record.py --ops (.json.gz). Only its segment_alloc
and segment_free entries are read. Three questions are asked of every policy:

  next address   the true state so far is given: is the next segment put exactly where the driver put it? What libraries take is not recorded, so a rest
                 that was passed over counts as a miss once and as taken from then on.
  order          nothing is given but the sizes: over all pairs of segments that lived together, does the policy tell which one has the lower address?
  equal sizes    the same, over pairs of the same size: those are the ties that decide between equally large free blocks

A driver takes memory in regions. A policy says how large a region is, where a new one goes, which rest of an old one serves a segment before a new
region is made, and what happens to a region that has become empty.
"""

import gzip
import json
import lzma
import pickle
import sys

MIB = 1 << 20
START = 1 << 46


def segment_events(path):
    """For each device its (is_alloc, address, size); expandable segments are not cudaMalloc's and are left out."""
    if path.endswith(".json.gz"):
        recorded = json.load(gzip.open(path, "rt"))
        events = list(recorded.get("before", []))
        for row in recorded.get("ops", []):
            events += row["events"] + row.get("after", [])
        return [[(kind == "S", address, size) for kind, size, address in events if kind in "Ss"]]
    snapshot = pickle.load(lzma.open(path) if path.endswith(".xz") else open(path, "rb"))
    if not isinstance(snapshot, dict):
        return []
    devices = []
    for trace in snapshot["device_traces"]:
        if any(entry["action"] == "segment_map" for entry in trace):
            continue
        devices.append(
            [
                (entry["action"] == "segment_alloc", entry["addr"], entry["size"])
                for entry in trace
                if entry["action"] in ("segment_alloc", "segment_free")
            ]
        )
    return devices


class Region:
    """Addresses taken at once; `used` holds its segments. `order` is larger the later it was made."""

    def __init__(self, begin, end, order):
        self.begin, self.end, self.order, self.used = begin, end, order, {}

    def rests(self):
        at = self.begin
        for begin, size in sorted(self.used.items()):
            if begin > at:
                yield at, begin - at
            at = begin + size
        if self.end > at:
            yield at, self.end - at


# The rest with the least of these serves.
RESTS = {
    "newest": lambda region, at, room: (-region.order, room, at),
    "newest, first": lambda region, at, room: (-region.order, at),
    "newest, last": lambda region, at, room: (-region.order, -at),
    "oldest": lambda region, at, room: (region.order, room, at),
    "lowest": lambda region, at, room: at,
    "highest": lambda region, at, room: -at,
    "best fit": lambda region, at, room: (room, -region.order, at),
}


class Policy:
    """granule: a region's size is a multiple of it, in MiB. rest: which rest serves first, None for no rest at all. hole: which hole left by returned
    regions a new one takes, the 'highest' (its upper end), the 'lowest' (its lower end) or None for never again; exact: also one of just its size."""

    def __init__(self, granule=32, rest="newest", down=True, hole="highest", exact=False):
        self.granule, self.rest, self.down, self.hole, self.exact = granule * MIB, rest, down, hole, exact
        self.regions, self.holes, self.made = [], [], 0
        self.low = self.high = START

    def place(self, size):
        if self.rest:
            fitting = [
                (RESTS[self.rest](region, at, room), at)
                for region in self.regions
                for at, room in region.rests()
                if room >= size
            ]
            if fitting:
                return min(fitting)[1]
        size = -(-size // self.granule) * self.granule
        fitting = [
            hole for hole in self.holes if hole[1] - hole[0] > size or (self.exact and hole[1] - hole[0] == size)
        ]
        if fitting and self.hole == "highest":
            return max(fitting)[1] - size
        if fitting and self.hole == "lowest":
            return min(fitting)[0]
        return self.low - size if self.down else self.high

    def put(self, address, size):
        for region in self.regions:
            if region.begin <= address < region.end:
                region.used[address] = size
                return
        begin = address
        end = -(-(address + size) // self.granule) * self.granule
        end = min([end] + [r.begin for r in self.regions if r.begin >= address + size])
        if self.low == self.high:
            self.low, self.high = begin, end
        self.low, self.high = min(self.low, begin), max(self.high, end)
        pieces = [piece for low, high in self.holes for piece in ((low, min(high, begin)), (max(low, end), high))]
        self.holes = [(low, high) for low, high in pieces if low < high]
        self.made += 1
        self.regions.append(Region(begin, end, self.made))
        self.regions[-1].used[address] = size

    def drop(self, address):
        for region in self.regions:
            if address in region.used:
                del region.used[address]
                if not region.used:
                    self.regions.remove(region)
                    self.give_back(region.begin, region.end)
                return

    def give_back(self, begin, end):
        for low, high in list(self.holes):
            if high == begin or low == end:
                self.holes.remove((low, high))
                begin, end = min(low, begin), max(high, end)
        if self.down and begin == self.low and self.hole:
            self.low = end
        else:
            self.holes.append((begin, end))


def next_address(events, make):
    """(right, all): each segment but the first, placed in the true state."""
    policy, right, count, first = make(), 0, 0, True
    for is_alloc, address, size in events:
        if not is_alloc:
            policy.drop(address)
            continue
        if not first:
            count += 1
            ours = policy.place(size)
            right += ours == address
            if ours != address and any(region.begin <= ours < region.end for region in policy.regions):
                policy.put(ours, size)
        first = False
        policy.put(address, size)
    return right, count


def order(events, make):
    """(right, all, right among equal sizes, all of those): pairs of segments that were alive together."""
    policy, alive, score = make(), {}, [0, 0, 0, 0]
    for is_alloc, address, size in events:
        if not is_alloc:
            if address in alive:
                policy.drop(alive.pop(address)[0])
            continue
        ours = policy.place(size)
        policy.put(ours, size)
        for other, (other_ours, other_size) in alive.items():
            right = (other < address) == (other_ours < ours)
            score[0] += right
            score[1] += 1
            if other_size == size:
                score[2] += right
                score[3] += 1
        alive[address] = (ours, size)
    return score


POLICIES = {
    "upwards, no regions, nothing used again": dict(granule=2, rest=None, down=False, hole=None),
    "downwards, no regions, nothing used again": dict(granule=2, rest=None, hole=None),
    "downwards in regions of 32 MiB, rests unused": dict(rest=None),
    "**rests of the newest region first, its best fit; highest larger hole**": dict(),
    "its first rest instead": dict(rest="newest, first"),
    "its last rest instead": dict(rest="newest, last"),
    "rests of the oldest region first": dict(rest="oldest"),
    "rest with the lowest address first": dict(rest="lowest"),
    "rest with the highest address first": dict(rest="highest"),
    "best fitting rest of all regions first": dict(rest="best fit"),
    "holes of just the size too": dict(exact=True),
    "lowest hole": dict(hole="lowest"),
    "holes never used again": dict(hole=None),
    "regions of 2 MiB": dict(granule=2),
    "regions of 64 MiB": dict(granule=64),
}


def percent(right, count):
    return f"{100 * right / count:.1f} % of {count}" if count else "–"


def main(paths):
    recordings = [events for path in paths for events in segment_events(path) if len(events) > 1]
    print("| policy | next address | order | order, equal sizes |")
    print("|---|---|---|---|")
    for name, settings in POLICIES.items():

        def make():
            return Policy(**settings)

        nexts = [sum(column) for column in zip(*(next_address(events, make) for events in recordings))]
        orders = [sum(column) for column in zip(*(order(events, make) for events in recordings))]
        print(f"| {name} | {percent(*nexts)} | {percent(*orders[:2])} | {percent(*orders[2:])} |")


if __name__ == "__main__":
    main(sys.argv[1:])
