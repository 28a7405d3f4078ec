"""Executions of compiled functions: everything that JAX computes is one, an eager operation too.

XLA takes one allocation for each result (a donated argument gives its own to a result of its shape and type), one for the table of the results where there are several, and one for all temporaries.
The temporaries, and arguments that had to be brought from the host, end with the execution. What is small is computed for real, on the CPU; else the results are arrays of zeros that cost nothing.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import weakref
from collections import defaultdict, deque

from ..._file_owner import is_library
from ...common.holdings import Holding, zeros
from ..session import marks
from ..session.device import OutOfMemory
from ..session.estimates import Estimated
from ..session.pool_session import uncounted
from ..session.unplannable import Unplannable
from .functions import jaxpr_cost
from .functions.constants import SMALLEST_BYTES, Constants, is_same_everywhere
from .functions.estimated_temporaries import temporary_bytes
from .functions.gpu_compiler import GpuCompiler, cpu_temporary_bytes

_SMALL = 1 << 22  # elements; more are not computed
_TOLD_BYTES = 1 << 20
_ESTIMATED = "temporaries of compiled functions, without XLA's compiler for the GPU"


class Function:
    """A traced function that is executed: what is known of it once."""

    def __init__(self, jaxpr, donated, name: str, keep_unused: bool, constants: Constants):
        self.donated, self.name, self.keep_unused = donated, name, keep_unused
        self.in_avals, self.out_avals = list(jaxpr.in_avals), list(jaxpr.out_avals)
        self.arguments = jaxpr_cost.names_of_arguments(jaxpr)
        self.effects = getattr(jaxpr, "effects", None)
        self.constants = constants
        self.loaded, self.is_loaded = 0, False  # the allocation of its constants
        self.is_one_kernel = jaxpr_cost.is_one_kernel(jaxpr)
        self.is_uniform = jaxpr_cost.is_broadcast(jaxpr)
        self.cost = jaxpr_cost.cost_of(jaxpr) + sum(jaxpr_cost.elements_of(a) for a in jaxpr.in_avals)
        self.cost += constants.elements
        self.may_not_end = jaxpr_cost.has(jaxpr, "while")
        self.temporary_bytes: int | None = None
        self.calls = 0
        self.kept: set[int] = set()  # arguments that were used after a call
        self.is_given_by_us = False  # donated for a trial, which JAX does not know of
        told = str(getattr(getattr(jaxpr, "debug_info", None), "func_src_info", "") or "")
        self.is_of_program = " at " in told and not is_library(told.rpartition(" at ")[2])
        self.alias_of = self._aliases()

    def _aliases(self) -> dict[int, int]:
        """Result → the donated argument whose memory it gets: in the order of the results, the first of the same shape and type."""
        free = defaultdict(deque)
        for at, (aval, given) in enumerate(zip(self.in_avals, self.donated)):
            if given:
                free[jaxpr_cost.kind_of_array(aval)].append(at)
        aliases = {}
        for at, aval in enumerate(self.out_avals):
            if free[jaxpr_cost.kind_of_array(aval)]:
                aliases[at] = free[jaxpr_cost.kind_of_array(aval)].popleft()
        return aliases


class Executions:
    def __init__(self, session):
        self._session = session
        self._functions: dict[tuple, Function] = {}
        self._jaxprs: dict[tuple, weakref.ref] = {}
        self._past: deque[Function] = deque(maxlen=1000)  # functions of the program that are gone
        self._local = threading.local()
        self._compiler: GpuCompiler | None = None
        self._step: tuple[int, Function | None] = (0, None)
        self._returns = 0  # how many things JAX's own function returns, which differs between releases; 0: not seen yet
        self._constant_bytes: dict[str, int] = defaultdict(int)  # by function and line, of all its compiled programs
        self.cpu_said: set[str] = set()  # why the CPU's compiler was asked

    @property
    def inside(self) -> bool:
        return getattr(self._local, "depth", 0) > 0

    @contextlib.contextmanager
    def _unwatched(self):
        self._local.depth = getattr(self._local, "depth", 0) + 1
        try:
            yield
        finally:
            self._local.depth -= 1

    def install(self) -> None:
        import jax
        from jax._src import pjit
        from jax._src.interpreters import pxla

        call = pjit._pjit_call_impl_python

        @functools.wraps(call)
        def faultline(*args, jaxpr, **params):
            def run():
                whole = call(*args, jaxpr=jaxpr, **params)
                self._returns = len(whole)
                return whole

            if self.inside or self._session.closed or not self._is_planned(args):
                return run()
            known = self._known(jaxpr, tuple(params["donated_invars"]), params["name"], params["keep_unused"])
            if known is None:
                return run()
            results = self._execute(known, jaxpr, args, lambda: run()[0], params.get("out_shardings"))
            if not self._returns:
                with self._unwatched():
                    jax.jit(lambda: 1)()
            return (results, *(None, None, [], None, None)[: self._returns - 1])

        pjit._pjit_call_impl_python = faultline
        # No data for JAX's fast path, so that no call goes by.
        pjit._get_fastpath_data = lambda *_args, **_named: None
        self._install_ahead(pjit, pxla)
        self._jax = jax

    def _install_ahead(self, pjit, pxla) -> None:
        """jit(f).lower(…).compile(): the executable is called without the function above."""
        lower, compiles, call = pjit._resolve_and_lower, pxla.MeshComputation.compile, pxla.MeshExecutable.call

        @functools.wraps(lower)
        def lowered(*args, **named):
            result = lower(*args, **named)
            if not self.inside:
                result._faultline = named["jaxpr"], tuple(named["donated_invars"]), named["name"], named["keep_unused"]
            return result

        @functools.wraps(compiles)
        def compiled(computation, *args, **named):
            executable = compiles(computation, *args, **named)
            if (told := getattr(computation, "_faultline", None)) is not None:
                executable._faultline = told
            return executable

        @functools.wraps(call)
        def called(executable, *args):
            told = getattr(executable, "_faultline", None)
            if told is None or self.inside or self._session.closed or not self._is_planned(args):
                return call(executable, *args)
            known = self._known(*told)
            if known is None:
                return call(executable, *args)
            return self._execute(known, told[0], args, lambda: call(executable, *args), None)

        pjit._resolve_and_lower = lowered
        pxla.MeshComputation.compile = compiled
        pxla.MeshExecutable.call = called
        pxla.MeshExecutable.create_cpp_call = lambda *_args: None

    # --- what is known of a function

    def _known(self, jaxpr, donated: tuple, name: str, keep_unused: bool) -> Function | None:
        """None: that went wrong, and the program runs on."""
        try:
            return self._function(jaxpr, donated, name, keep_unused)
        except Exception as problem:
            self._session.trouble(problem, str(name))
            return None

    def _function(self, jaxpr, donated: tuple, name: str, keep_unused: bool) -> Function:
        key = id(jaxpr), donated
        known = self._functions.get(key)
        if known is None:
            given = self._session.remedies.donated(name, jaxpr, donated)
            constants = Constants(jaxpr, self._is_uniform)
            known = self._functions[key] = Function(jaxpr, given, name, keep_unused, constants)
            known.is_given_by_us = given != donated
            self._jaxprs[key] = weakref.ref(jaxpr, functools.partial(self._gone, key))
        return known

    def _is_uniform(self, array) -> bool:
        """The same value everywhere: no memory of a compiled program's."""
        known = self._session.arrays.of(array)
        if known is not None and (known.is_uniform or known.is_stand_in):
            return known.is_uniform
        try:
            return is_same_everywhere(array)
        except Exception:  # keys, arrays of several devices
            return False

    def _gone(self, key: tuple, _) -> None:
        """Nothing can call the function any more: its compiled program goes."""
        self._jaxprs.pop(key, None)
        known = self._functions.pop(key, None)
        if known is None:
            return
        self._session.give_back(known.loaded)
        known.constants.let_go()
        if known.is_of_program:
            self._past.append(known)

    def size_of(self, aval) -> int:
        """In bytes, as the GPU has it."""
        import numpy as np
        from jax._src import core, dtypes

        if not hasattr(aval, "dtype"):
            return 0
        if dtypes.issubdtype(aval.dtype, dtypes.extended):
            aval = core.physical_aval(aval)
        elements = jaxpr_cost.elements_of(aval)
        if str(aval.dtype) in ("int4", "uint4", "float4_e2m1fn"):
            return (elements + 1) // 2
        return elements * np.dtype(aval.dtype).itemsize

    def _temporary_bytes(self, known: Function, jaxpr) -> int:
        if known.temporary_bytes is None:
            known.temporary_bytes = 0 if known.is_one_kernel else self._ask_compiler(known, jaxpr)
        return known.temporary_bytes

    def _ask_compiler(self, known: Function, jaxpr) -> int:
        return uncounted(self._session)(self._compile)(known, jaxpr)

    def _compile(self, known: Function, jaxpr) -> int:
        import jax

        function, constants = known.constants.function(jaxpr)
        avals = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in known.in_avals]
        avals += [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in constants]
        donated = tuple(at for at, given in enumerate(known.donated) if given)

        with self._unwatched():
            if self._compiler is None:
                self._compiler = GpuCompiler(self._session.gpu)
            found = self._compiler.temporary_bytes(function, avals, donated, known.keep_unused)
            if found is not None:
                return found
            self.cpu_said.add(
                self._compiler.why_not
                or f"{known.name} could not be compiled for the GPU here ({self._compiler.problem})"
            )
            try:
                by_cpu = cpu_temporary_bytes(function, avals, donated, known.keep_unused)
                return Estimated(*temporary_bytes(jaxpr, by_cpu, self._workspace_bytes()), _ESTIMATED)
            except Exception as problem:
                Unplannable(
                    f"what {known.name} takes beside its results is not known: it could not be compiled here ({type(problem).__name__})"
                )
                return 0

    def _workspace_bytes(self) -> int:
        """What XLA lets cuBLAS have."""
        return (32 if self._session.gpu.major >= 9 else 4) << 20

    # --- an execution

    def _is_planned(self, args) -> bool:
        from jax._src import array
        from jax._src.interpreters import pxla

        devices = self._session.devices
        for arg in args:
            arg = getattr(arg, "_base_array", arg)
            if isinstance(arg, array.ArrayImpl) and arg._committed:
                return devices.is_planned(arg.devices())
        return devices.is_planned((pxla.get_default_device(),))

    def _execute(self, known: Function, jaxpr, args, run, out_shardings):
        from jax._src import array

        session, arrays = self._session, self._session.arrays
        stack = session.here()
        self._count(known)
        bases = [getattr(arg, "_base_array", arg) for arg in args]
        session.unseen.count([b for b in bases if isinstance(b, array.ArrayImpl) and arrays.of(b) is None])
        session.remedies.executed(known, bases)
        from_stand_ins = any(isinstance(b, array.ArrayImpl) and arrays.is_stand_in(b) for b in bases)
        is_real = session.all_real or (known.cost <= _SMALL and not (known.may_not_end and from_stand_ins))
        self._load(known, stack)
        passing, holdings = self._take(known, jaxpr, bases, stack, is_real)
        try:
            if is_real:
                with self._unwatched():
                    results = run()
            else:
                results = self._not_computed(known, bases, out_shardings, run)
        except BaseException:
            for holding in holdings:
                if holding is not None and holding.arrays == 0:
                    session.give_back(holding.allocation)
            raise
        finally:
            for allocation in passing:
                session.give_back(allocation)
        for result, holding in zip(results, holdings):
            base = getattr(result, "_base_array", result)
            if holding is None or not isinstance(base, array.ArrayImpl):
                continue
            if arrays.of(base) is None:
                arrays.follow(base, holding, not is_real or from_stand_ins, known.is_uniform)
            elif holding.arrays == 0:  # it is one of the arguments
                session.give_back(holding.allocation)
        self._give_away(known, bases, is_real)
        session.tick()  # what was traced and compiled is counted before the time is over
        return results

    def _load(self, known: Function, stack: int) -> None:
        """With the first call the compiled program comes to the GPU, and its constants with it."""
        constants, session = known.constants, self._session
        size = constants.bytes
        if known.is_loaded or size < SMALLEST_BYTES:
            return
        known.is_loaded = True
        line = session.line_name()
        are_given = session.remedies.gives_constants(known)
        if are_given:  # what lies on the GPU already lies there once; what is the host's is put there
            size = constants.host_bytes
        tensor = session.device.tensor((size,), "byte", "", f"constants of {known.name} ({line})")
        try:
            known.loaded = (session.take if are_given else session.take_outside)(size, stack, tensor)
        except OutOfMemory:
            known.is_loaded = False
            when = "" if are_given else "while the constants of a compiled program were loaded"
            raise session.out_of_memory(size, when) from None
        self._constant_bytes[f"{known.name} ({line})"] += 0 if are_given else size

    def _take(self, known: Function, jaxpr, bases, stack: int, is_real: bool):
        """Memory for what passes with the execution, and for each result."""
        from jax._src import array

        session = self._session
        passing: list[int] = []
        holdings: list[Holding | None] = []
        line = session.line_name()

        def take(size: int, tensor: int) -> int:
            try:
                return session.take(size, stack, tensor)
            except OutOfMemory:
                for allocation in (*passing, *(h.allocation for h in holdings if h is not None and h.arrays == 0)):
                    session.give_back(allocation)
                raise session.out_of_memory(size) from None

        for base, aval in zip(bases, known.in_avals):
            if not isinstance(base, array.ArrayImpl):
                passing.append(take(self.size_of(aval), self._tensor(aval, "device_put", line)))
        with self._results_of_one_call(len(known.out_avals), stack):
            for at, aval in enumerate(known.out_avals):
                donor = known.alias_of.get(at)
                followed = session.arrays.of(bases[donor]) if donor is not None else None
                if followed is not None and not followed.ended:
                    holdings.append(followed.holding)
                else:
                    size = self.size_of(aval)
                    holdings.append(Holding(take(size, self._tensor(aval, known.name, line))))
        if len(known.out_avals) > 1:
            passing.append(take(8 * len(known.out_avals), 0))
        if not is_real or known.cost > _SMALL:
            if size := self._temporary_bytes(known, jaxpr):
                name = f"temporaries of {known.name} ({line})"
                passing.append(take(size, session.device.tensor((size,), "byte", "", name)))
        return passing, holdings

    @contextlib.contextmanager
    def _results_of_one_call(self, count: int, stack: int):
        """They are no rounds of a loop, however many."""
        if count < 2:
            yield
            return
        self._session.device.op_begin(marks.CALL, stack)
        try:
            yield
        finally:
            self._session.device.op_end("", False, stack)

    def _tensor(self, aval, operation: str, line: str) -> int:
        shape = tuple(d for d in getattr(aval, "shape", ()) if isinstance(d, int))
        return self._session.device.tensor(shape, str(getattr(aval, "dtype", "")), operation, line)

    def _not_computed(self, known: Function, bases, out_shardings, run) -> list:
        self._note_effects(known)
        try:
            return self._stand_ins(known, bases, out_shardings)
        except Exception as problem:
            self._session.trouble(problem, known.name)
            with self._unwatched():
                return run()

    def _stand_ins(self, known: Function, bases, out_shardings) -> list:
        from jax._src import array, core, dtypes
        from jax.sharding import NamedSharding, PartitionSpec, SingleDeviceSharding

        session = self._session
        device = session.devices.gpu()
        given = [b for b in bases if isinstance(b, array.ArrayImpl)]
        committed = any(b._committed for b in given)
        mesh = next((b.sharding.mesh for b in given if isinstance(b.sharding, NamedSharding)), None)
        results = []
        for at, aval in enumerate(known.out_avals):
            if not hasattr(aval, "dtype"):
                raise Unplannable(f"{known.name} returns something that is no array ({aval})")
            asked = out_shardings[at] if out_shardings and at < len(out_shardings) else None
            is_key = dtypes.issubdtype(aval.dtype, dtypes.extended)
            physical = core.physical_aval(aval) if is_key else aval
            if isinstance(asked, (NamedSharding, SingleDeviceSharding)):
                sharding = asked
            else:
                sharding = NamedSharding(mesh, PartitionSpec()) if mesh is not None else SingleDeviceSharding(device)
            made = session.put(
                core.ShapedArray(physical.shape, physical.dtype, weak_type=getattr(aval, "weak_type", False)),
                sharding,
                [zeros(physical.shape, physical.dtype)],
                [device],
                committed,
            )
            results.append(self._jax.random.wrap_key_data(made, impl=str(aval.dtype._impl.name)) if is_key else made)
        return results

    def _give_away(self, known: Function, bases, is_real: bool) -> None:
        for base, given in zip(bases, known.donated):
            if not given or not hasattr(base, "delete"):
                continue
            if is_real and not base.is_deleted() and not known.is_given_by_us:
                continue  # JAX could not use it
            self._session.arrays.end(base)
            if not base.is_deleted():
                base.delete()

    def _note_effects(self, known: Function) -> None:
        if known.effects and known.calls == 1:
            self._session.notes.add(
                "skipped",
                f"{known.name} is not computed, so what it prints or calls back while it runs does not happen",
            )

    def _count(self, known: Function) -> None:
        """The program's own function that takes most, of those that are called again and again, is a step."""
        known.calls += 1
        if known.calls < 2 or not known.is_of_program:
            return
        weight = sum(self.size_of(aval) for aval in known.out_avals) + (known.temporary_bytes or 0)
        if self._step[1] is not known and weight <= self._step[0] and self._step[1] is not None:
            return
        self._step = weight, known
        self._session.step(known.name)

    def offers(self) -> list[dict]:
        return self._session.remedies.offers([*self._past, *self._functions.values()])

    def tell_at_end(self) -> None:
        notes = self._session.notes
        for name, size in self._constant_bytes.items():
            if size >= _TOLD_BYTES:
                notes.add(
                    "kernel",
                    f"{name} closes over arrays: its compiled programs keep {size / (1 << 30):,.2f} GiB of them as constants, beside the pool; given as arguments they would be there once",
                    "",
                )
        for why in sorted(self.cpu_said):
            notes.add(
                "kernel",
                f"what compiled functions take beside their results is estimated, from XLA's compiler for the CPU and from their own equations, for {why} (with jax[cuda13] installed here, for which no GPU is needed, XLA's compiler for the GPU is asked)",
                "",
                verdict="with temporaries estimated without XLA's compiler for the GPU",
            )
        if self._compiler is not None and not self._compiler.why_not:
            notes.add(
                "kernel",
                "temporaries are what XLA's compiler says for this GPU; its search for the fastest kernels, which needs a GPU and takes memory of its own while it compiles, is not in the numbers",
                "",
            )
