"""%%faultline watch: what a cell added on the GPU and did not give back, by line, and who keeps it."""

from __future__ import annotations

import sys

from .._file_owner import is_library, is_own
from ..report import Report, Section, bytes_in_words
from .kept_alive import Search, described, fixes_for
from .torch_history import TorchHistory

_MOST_LINES = 8
_LEAST = 1 << 10


class WatchedCell:
    def __init__(self, session, _order, number, source):
        self._session, self._number, self._source = session, number, source
        self._history = TorchHistory()

    def begin(self):
        self._history.begin()
        self._before = {key for holder in Search(self._session.shell).holders for key in holder.arrays}
        self._blocks = _blocks(self._snapshot())
        self._allocated = allocated()

    def end(self, result):
        snapshot = self._history.end()
        shell, cells = self._session.shell, self._session.cells
        search = Search(shell)
        fresh = _allocated_since(snapshot, self._history.began_us)

        def is_new(key, at):
            return key not in self._before or at in fresh

        added = allocated() - self._allocated
        lines = by_line(snapshot, self._blocks, fresh, cells)
        held = sorted(((h.bytes(is_new), h) for h in search.holders), key=lambda one: -one[0])
        held = [(size, holder) for size, holder in held if size >= _LEAST]
        sections = [self._said(added, lines, held)]
        if held:
            rows = tuple((size, h.name, described(h, shell, cells)) for size, h in held[:_MOST_LINES])
            sections.append(Section("Who keeps it", (), rows, tuple(fixes_for([h for _, h in held]))))
        return Report({}, tuple(sections))

    def _said(self, added, lines, held):
        sentences = list(self._history.notes)
        torch = sys.modules.get("torch")
        has_torch = torch is not None and torch.cuda.is_initialized()
        total = max(added, sum(size for size, _ in held)) if not has_torch else added
        times = self._session.times_run(self._source, max(total, 0))
        if not has_torch and not held:
            title = f"Cell [{self._number}] left nothing on a GPU"
            sentences.append(why_nothing(torch))
        elif total > 0:
            title = f"Cell [{self._number}] left {bytes_in_words(total)} on the GPU"
        elif total < 0:
            title = f"Cell [{self._number}] freed {bytes_in_words(-total)} of GPU memory"
        else:
            title = f"Cell [{self._number}] left nothing on the GPU"
        if len(times) > 1 and min(times) > 0:
            told = ", ".join(map(bytes_in_words, times[-4:]))
            sentences.append(f"The same cell was run {len(times)} times, and each time something stayed: {told}.")
        if has_torch and self._history.by_user:
            sentences.append("PyTorch's history is recorded by the notebook itself: its settings are as they were.")
        rows = tuple((size, place, f"×{count}") for size, count, place in lines[:_MOST_LINES])
        return Section(title, tuple(sentences), rows)

    def _snapshot(self):
        torch = sys.modules.get("torch")
        if torch is None or not torch.cuda.is_initialized():
            return None
        return self._history._quietly(torch.cuda.memory._snapshot)


def allocated() -> int:
    """What PyTorch has in use, on all GPUs."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return 0
    return sum(torch.cuda.memory_allocated(index) for index in range(torch.cuda.device_count()))


def why_nothing(torch) -> str:
    if torch is None and "jax" not in sys.modules and "tensorflow" not in sys.modules:
        return "Neither PyTorch nor JAX nor TensorFlow is imported in this kernel."
    if torch is not None and torch.version.cuda is None and getattr(torch.version, "hip", None) is None:
        return f"PyTorch {torch.__version__} is a build for the CPU; %%faultline plan says what the cell would take on a GPU."
    return "No framework has begun to use a GPU in this kernel."


def _active(snapshot):
    for segment in (snapshot or {}).get("segments", ()):
        for block in segment.get("blocks", ()):
            if block.get("state") == "active_allocated":
                yield (segment.get("device", 0), block.get("address", 0)), block


def _blocks(snapshot) -> set:
    return {place for place, _ in _active(snapshot)}


def _allocated_since(snapshot, began_us) -> set:
    """Addresses that were given out during the cell."""
    return {
        entry.get("addr")
        for trace in (snapshot or {}).get("device_traces", ())
        for entry in trace
        if entry.get("action") == "alloc" and entry.get("time_us", began_us) >= began_us
    }


def by_line(snapshot, before, fresh, cells) -> list:
    """[(bytes, how many, place)] of the blocks that are there now and were not before the cell."""
    sums = {}
    for place, block in _active(snapshot):
        if place in before and place[1] not in fresh:
            continue
        words = place_of(block.get("frames") or (), cells)
        size, count = sums.get(words, (0, 0))
        sums[words] = (size + (block.get("requested_size") or block.get("size", 0)), count + 1)
    return sorted(((size, count, words) for words, (size, count) in sums.items()), reverse=True)


def place_of(frames, cells) -> str:
    """The innermost line of the program's own: cell [12], line 3 in f."""
    for frame in frames:
        file = frame.get("filename", "")
        if file and not is_library(file) and not is_own(file) and file.endswith((".py", ">")):
            name, line, function = cells.name_of(file), frame.get("line", 0), frame.get("name", "")
            words = f"{name}, line {line}" if name.startswith("cell [") else f"{name}:{line}"
            return words + (f" in {function}" if function and not function.startswith("<") else "")
    return "a line that Python does not know (made in backward, or before the history began)"
