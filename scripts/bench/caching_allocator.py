"""Where PyTorch's CUDA caching allocator puts each request under default settings.

Best fit among the free blocks of the same stream and pool (small up to 1 MiB, large above), lowest address on ties; the low part of
a split is handed out; freed blocks merge with free neighbours of their segment. What it cannot know is where the driver puts a new
segment: that comes from `segment_addresses`, one per new segment, and after those from below the lowest seen.
"""

import bisect

MIB = 1 << 20
MIN_BLOCK = 512
SMALL_LIMIT = 1 * MIB
SMALL_SEGMENT = 2 * MIB
LARGE_SEGMENT = 20 * MIB
LARGE_SEGMENT_BELOW = 10 * MIB
SEGMENT_STEP = 2 * MIB


class Block:
    __slots__ = ("address", "size", "requested", "segment", "before", "after", "frames")

    def __init__(self, address, size, segment):
        self.address, self.size, self.segment = address, size, segment
        self.requested = 0
        self.before = self.after = None
        self.frames = None  # of the allocation that holds the block; None while it is free


class Segment:
    __slots__ = ("address", "size", "stream", "small", "first", "frames")

    def __init__(self, address, size, stream, small, frames):
        self.address, self.size, self.stream, self.small = address, size, stream, small
        self.frames = frames  # PyTorch forgets them at the first split
        self.first = Block(address, size, self)


def round_up(size, step):
    return (size + step - 1) // step * step


class CachingAllocator:
    def __init__(self, segment_addresses):
        self.segment_addresses = list(segment_addresses)
        self.lowest_address = min(self.segment_addresses, default=0x7F0000000000)
        self.segments = []
        self.free_blocks = {}  # (stream, small) -> sorted [(size, address)]
        self.free_at = {}  # address -> free Block

    def alloc(self, size, stream, frames):
        """Returns the block, and the segment if a new one was needed for it."""
        rounded = max(MIN_BLOCK, round_up(size, MIN_BLOCK))
        small = rounded <= SMALL_LIMIT
        free = self.free_blocks.setdefault((stream, small), [])
        at = bisect.bisect_left(free, (rounded, 0))
        new_segment = None
        if at < len(free):
            block = self.free_at.pop(free.pop(at)[1])
        else:
            new_segment = self._new_segment(rounded, stream, small, frames)
            block = new_segment.first
        rest = block.size - rounded
        if rest >= MIN_BLOCK if small else rest > SMALL_LIMIT:
            block = self._split(block, rounded)
        block.requested = size
        block.frames = frames
        return block, new_segment

    def free(self, block):
        block.frames = None
        if block.before and block.before.frames is None:
            gone = block.before
            self._forget_free(gone)
            block.address = gone.address
            block.size += gone.size
            block.before = gone.before
            if block.before:
                block.before.after = block
            else:
                block.segment.first = block
        if block.after and block.after.frames is None:
            gone = block.after
            self._forget_free(gone)
            block.size += gone.size
            block.after = gone.after
            if block.after:
                block.after.before = block
        self._remember_free(block)

    def blocks(self):
        """Every block, by segment address and then by its own."""
        for segment in sorted(self.segments, key=lambda s: s.address):
            block = segment.first
            while block:
                yield block
                block = block.after

    def _new_segment(self, rounded, stream, small, frames):
        size = (
            SMALL_SEGMENT
            if small
            else LARGE_SEGMENT
            if rounded < LARGE_SEGMENT_BELOW
            else round_up(rounded, SEGMENT_STEP)
        )
        if self.segment_addresses:
            address = self.segment_addresses.pop(0)
        else:
            address = self.lowest_address = self.lowest_address - size
        segment = Segment(address, size, stream, small, frames)
        self.segments.append(segment)
        return segment

    def _split(self, block, rounded):
        low = Block(block.address, rounded, block.segment)
        low.before, low.after = block.before, block
        if low.before:
            low.before.after = low
        else:
            block.segment.first = low
        block.segment.frames = None
        block.before = low
        block.address += rounded
        block.size -= rounded
        self._remember_free(block)
        return low

    def _remember_free(self, block):
        bisect.insort(self.free_blocks[block.segment.stream, block.segment.small], (block.size, block.address))
        self.free_at[block.address] = block

    def _forget_free(self, block):
        free = self.free_blocks[block.segment.stream, block.segment.small]
        del free[bisect.bisect_left(free, (block.size, block.address))]
        del self.free_at[block.address]
