"""Changes to a JAX program that a dry run can try: an argument whose memory a result may take, and a vmap that goes through its elements in groups.

What is offered is what was seen: an argument of a function that is called again and again, of a result's shape and type, which nothing used after the call.
"""

from __future__ import annotations

import functools

from ...remedies.remedy import Offer
from ...remedies.table import JAX
from ...source.reader import calling_frame
from ..functions.jaxpr_cost import kind_of_array, names_of_arguments
from .recomputation import Recomputation, name_of

_LEAST_BYTES = 1 << 20  # less is not worth a line
_LEAST_ELEMENTS = 16  # of a vmap
_GROUPS = (4, 16, 64)


class JaxRemedies:
    def __init__(self, session):
        self._session = session
        self._wanted = session.options.get("changes") or {}
        self._given: dict[
            int, tuple
        ] = {}  # by the id of what is followed: it, the function and the place it was given at
        self._vmaps: dict[str, tuple[str, int]] = {}  # by the program's line: the function, how many elements
        self._scans: dict[str, str] = {}  # by the program's line: the body's name
        self._has_gradients = False
        self._layers = Recomputation(str(self._wanted.get("recompute") or ""))
        self.applied: dict[str, str] = {}

    def all_applied(self) -> dict[str, str]:
        return {**self.applied, **({"recompute": self._layers.applied} if self._layers.applied else {})}

    # --- donation

    def donated(self, name: str, jaxpr, donated: tuple) -> tuple:
        """With what is asked for in this run."""
        function, _, names = str(self._wanted.get("donate") or "").partition(":")
        if function != name or not names:
            return donated
        roots = names_of_arguments(jaxpr)
        if len(roots) != len(donated):
            return donated
        self.applied["donate"] = f"{names} of {name}"
        return tuple(given or root in names.split(",") for given, root in zip(donated, roots))

    def executed(self, known, bases) -> None:
        """What was given to a function before, and is used again now, has to stay."""
        arrays, seen = self._session.arrays, set()
        for at, base in enumerate(bases):
            followed = arrays.of(base)
            if followed is None:
                continue
            self._used(id(followed))
            if id(followed) in seen:
                known.kept.update(other for other, each in enumerate(bases) if each is base)
            seen.add(id(followed))
        if known.is_of_program:
            for at, base in enumerate(bases):
                if at not in known.kept and (followed := arrays.of(base)) is not None:
                    self._given[id(followed)] = followed, known, at

    def read(self, array) -> None:
        if (followed := self._session.arrays.of(array)) is not None:
            self._used(id(followed))

    def _used(self, key: int) -> None:
        if (given := self._given.pop(key, None)) is not None:
            given[1].kept.add(given[2])

    def _donations(self, functions):
        sizes = self._session.executions.size_of
        for known in functions:
            roots = known.arguments
            if known.calls < 2 or not known.is_of_program or any(known.donated) or len(roots) != len(known.donated):
                continue
            left = [(kind_of_array(aval), sizes(aval)) for aval in known.out_avals]
            names, gained = [], 0
            for root in dict.fromkeys(roots):
                places = [at for at, each in enumerate(roots) if each == root]
                if not root or any(at in known.kept for at in places):
                    continue
                matched = 0
                for at in places:
                    result = next((one for one in left if one[0] == kind_of_array(known.in_avals[at])), None)
                    if result is not None:
                        left.remove(result)
                        matched += result[1]
                if matched:
                    names.append(root)
                    gained += matched
            if gained >= _LEAST_BYTES:
                yield known, names

    # --- constants

    def _closed_over(self, functions):
        taken: dict[str, int] = {}
        for known in functions:
            if known.is_of_program and known.calls:
                taken[known.name] = taken.get(known.name, 0) + known.constants.bytes
        return [(name, size) for name, size in taken.items() if size >= _LEAST_BYTES and name.isidentifier()]

    def gives_constants(self, known) -> bool:
        """As arguments they are the arrays that are there already, and no copy is in the compiled program."""
        wanted = self._wanted.get("arguments")
        if not wanted or wanted != known.name:
            return False
        self.applied["arguments"] = known.name
        return True

    # --- vmap

    def install(self) -> None:
        import jax

        before = jax.vmap

        @functools.wraps(before)
        def vmap(fun, *arguments, **named):
            mapped = before(fun, *arguments, **named)
            line = _line_of_program()
            if not line or arguments or named:
                return mapped
            wanted, _, group = str(self._wanted.get("map") or "").rpartition(":")
            group = int(group) if wanted == line else 0
            name = getattr(fun, "__name__", "f").strip("<>")

            @functools.wraps(mapped)
            def faultline(*args, **kwargs):
                count = max((leaf.shape[0] for leaf in jax.tree.leaves(args) if getattr(leaf, "ndim", 0)), default=0)
                self._vmaps[line] = name, max(count, self._vmaps.get(line, ("", 0))[1])
                if not group or kwargs or count <= group:
                    return mapped(*args, **kwargs)
                self.applied["map"] = f"{group} of {count} at a time ({line})"
                return jax.lax.map(lambda one: fun(*one), args, batch_size=group)

            return faultline

        jax.vmap = vmap
        self._install_scan(jax)

    def _install_scan(self, jax) -> None:
        """Bodies of scans, whose values a gradient keeps for every round."""
        scan = jax.lax.scan

        @functools.wraps(scan)
        def scanned(f, *arguments, **named):
            if (line := _line_of_program()) and self._has_gradients:
                self._scans.setdefault(line, getattr(f, "__name__", "f").strip("<>"))
                if self._wanted.get("remat"):
                    self.applied["remat"] = "bodies of scans"
                    f = jax.checkpoint(f)
            return scan(f, *arguments, **named)

        def noted(before):
            @functools.wraps(before)
            def gradient(*arguments, **named):
                self._has_gradients |= bool(_line_of_program())
                if arguments and callable(arguments[0]):
                    arguments = (self._layers.watched(arguments[0]), *arguments[1:])
                return before(*arguments, **named)

            return gradient

        jax.lax.scan = scanned
        for name in ("grad", "value_and_grad", "vjp"):
            setattr(jax, name, noted(getattr(jax, name)))

    def offers(self, functions) -> list[dict]:
        found = [*self._donated(functions), *self._as_arguments(functions), *self._in_groups(), *self._computed_again()]
        return [offer.told(name, JAX) for name, offer in found]

    def _donated(self, functions):
        for known, names in self._donations(functions):
            words = ", ".join(names)
            quoted = ", ".join(repr(name) for name in names) + ("," if len(names) == 1 else "")
            yield (
                "donate",
                Offer(
                    f"{known.name}:{','.join(names)}",
                    f"donating {words} to {known.name}",
                    f"Let the results of {known.name} take the place of {words}, which nothing used afterwards: donate_argnames=({quoted}) in its jax.jit",
                    keeps={"running": 0.6},
                ),
            )

    def _as_arguments(self, functions):
        for name, _ in self._closed_over(functions):
            yield (
                "arguments",
                Offer(
                    name,
                    f"giving {name} its arrays as arguments",
                    f"Give {name} the arrays that it closes over as arguments: as constants each of its compiled programs has a copy of its own, beside the pool",
                    keeps={"running": 0.6},
                ),
            )

    def _in_groups(self):
        for line, (name, count) in self._vmaps.items():
            for part in _GROUPS:
                if count < _LEAST_ELEMENTS or count // part <= 1:
                    continue
                yield (
                    "map",
                    Offer(
                        f"{line}:{count // part}",
                        f"{name} ({line}) in groups of {count // part}",
                        f"Go through the {count} elements of jax.vmap({name}) ({line}) in groups: jax.lax.map(lambda one: {name}(*one), arguments, batch_size={count // part})",
                        keeps={"running": 1 / part},
                    ),
                )

    def _computed_again(self):
        for code, calls in self._layers.found():
            yield (
                "recompute",
                Offer(
                    name_of(code),
                    f"computing {code.co_name} again",
                    f"Compute {code.co_name}, of which a gradient keeps what {calls} calls computed, again instead: jax.checkpoint ({name_of(code).partition('@')[2]})",
                    keeps={"running": 0.4},
                    edits=self._layers.edits(code),
                ),
            )
        if self._scans:
            line, name = next(iter(self._scans.items()))
            yield (
                "remat",
                Offer(
                    "true",
                    "computing the bodies of scans again",
                    f"Compute the bodies of scans again for the gradient instead of keeping their values: jax.lax.scan(jax.checkpoint({name}), …) ({line})",
                    keeps={"running": 0.6},
                ),
            )


def _line_of_program() -> str:
    frame = calling_frame()
    if frame is None:
        return ""
    return f"{frame.f_code.co_filename.rpartition('/')[2]}:{frame.f_lineno}"
