"""Compares the stacks that the probe library reads with the interpreter's own: stack_program.py LIBRARY CASE. Prints nothing but measurements, and fails by an assertion."""

import asyncio
import atexit
import ctypes
import functools
import gc
import os
import sys
import threading
import time

held = ctypes.PyDLL(sys.argv[1])  # calls keep the GIL
free = ctypes.CDLL(sys.argv[1])  # calls let it go
for library in (held, free):
    library.probe_python_cost.restype = library.probe_native_cost.restype = ctypes.c_double
    library.probe_python.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_int]


class WithGil:
    """The way of an interpreter whose layout cannot be learned."""

    probe_python = staticmethod(held.probe_python_with_gil)


NO_PYTHON, NOT_YET, WITH_GIL, ALWAYS = range(4)
local = threading.local()


def probe(library, most=1000):
    buffer = local.__dict__.setdefault("buffer", ctypes.create_string_buffer(1 << 18))
    assert library.probe_python(buffer, len(buffer), most) >= 0
    rows = [line.split("\t") for line in buffer.value.decode().split("\n")[:-1]]
    return [(file, function, int(line), name) for file, function, line, name in rows]


def expected_from(frame):
    frames = []
    while frame is not None:
        code = frame.f_code
        frames.append((code.co_filename, getattr(code, "co_qualname", code.co_name), frame.f_lineno))
        frame = frame.f_back
    return frames


checks = 0


def check(library):
    global checks
    found, expected = probe(library), expected_from(sys._getframe())
    assert [frame[:3] for frame in found[1:]] == expected, f"\nread     {found[1:]}\nexpected {expected}"
    checks += 1
    return True


def learn():
    """Until stacks can be read without the GIL: the lesson comes when the main thread next looks."""
    for _ in range(100):
        probe(free)
        if held.probe_python_state() == ALWAYS:
            return
    raise AssertionError(f"state {held.probe_python_state()}")


def recursion(library, depth):
    return recursion(library, depth - 1) if depth else check(library)


class Constructed:
    def __init__(self, library):
        self.ok = check(library)

    @property
    def prop(self):
        return check(held) and check(free)

    def __enter__(self):
        return check(free)

    def __exit__(self, *_):
        check(free)

    def __del__(self):
        if sys is not None and not sys.is_finalizing():
            check(free)

    def __lt__(self, other):
        return check(free)


def generator(library):
    yield check(library)
    yield from (check(library) for _ in range(2))


async def coroutine(library, depth):
    if depth:
        await asyncio.sleep(0)
        return await coroutine(library, depth - 1)
    async for _ in async_generator(library):
        check(library)
    return check(library)


async def async_generator(library):
    for _ in range(2):
        await asyncio.sleep(0)
        yield check(library)


def all_kinds(library):
    check(library)
    assert all(generator(library))
    assert all([check(library) for _ in range(3)])
    assert {check(library): check(library) for _ in range(2)}
    (lambda: (lambda: check(library))())()
    recursion(library, 500)
    sorted([3, 1, 2], key=lambda _: check(library))
    list(map(functools.partial(lambda _, a: check(a), a=library), [1, 2]))
    for _ in range(60):  # often enough for the interpreter to specialise the call
        with Constructed(library) as made:
            assert made
    assert Constructed(library).prop
    sorted([Constructed(library), Constructed(library)])
    asyncio.run(coroutine(library, 3))
    try:
        try:
            raise ValueError("kept")
        except ValueError:
            check(library)
            assert sys.exc_info()[0] is ValueError
            raise
        finally:
            check(library)
    except ValueError as error:
        assert error.__traceback__.tb_frame is sys._getframe()
    (check(library))
    for name in ("<generated>", "/tmp/файл-日本-😀.py", "é.py", "x" * 3000):
        exec(
            compile(
                "\n\ndef f(library):\n  return check(library)\nf(library)\nclass Ünï:\n  ok = check(library)",
                name,
                "exec",
            ),
            {"check": check, "library": library},
        )
    eval("[check(library) for _ in (1, 2)]", {"check": check, "library": library})


def case_kinds_of_code():
    all_kinds(held)  # before anything was learned, through public functions as long as need be
    learn()
    before = checks
    all_kinds(held)
    all_kinds(free)
    all_kinds(WithGil)
    assert checks - before > 500, checks - before


def case_a_short_buffer_gets_the_innermost_frames():
    learn()
    for library in (held, free):
        whole, short = probe(library), probe(library, 2)
        assert (
            len(short) == 2
            and len(whole) > 2
            and [frame[1] for frame in short] == ["probe", "case_a_short_buffer_gets_the_innermost_frames"]
        )


def case_many_threads():
    learn()
    end, failures, counts = time.monotonic() + 1, [], []

    def work(number):
        try:
            count = 0
            while count == 0 or time.monotonic() < end:  # a busy machine may let a thread begin late
                recursion(free, number)
                assert all(generator(free))
                count += 1
            counts.append(count)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not failures, failures[0]
    assert len(counts) == 8 and min(counts) > 0


def case_learns_while_the_main_thread_waits():
    def work():
        for _ in range(2):
            check(held)
            recursion(held, 3)
            all(generator(held))
        assert held.probe_python_state() == ALWAYS
        assert check(free)

    failures = []
    threading.excepthook = lambda args: failures.append(args.exc_value)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert not failures, failures


def case_a_thread_unknown_to_python():
    assert held.probe_python_elsewhere() == 0
    learn()
    assert held.probe_python_elsewhere() == 0 and free.probe_python_elsewhere() == 0


def case_reused_memory_is_told_apart():
    """What a frame was said to mean must stay true for as long as its name (code, identity, instruction) is met again."""
    learn()
    meanings, addresses, reused = {}, set(), 0

    def remember(where):
        nonlocal reused
        for frame in probe(free)[2:3]:
            assert meanings.setdefault(frame[3], frame[:3]) == frame[:3], (meanings[frame[3]], frame)
            assert frame[0] == where, (frame, where)
            address = frame[3].split(":")[0]
            reused += address in addresses
            addresses.add(address)

    for number in range(3000):
        file = f"<generated {number % 50}>"
        lines = "\n" * (number % 7)
        if number % 3 == 0:
            exec(compile(f"{lines}remember(where)", file, "exec"), {"remember": remember, "where": file})
        elif number % 3 == 1:
            exec(
                compile(f"{lines}def f{number % 11}(): remember(where)\nf{number % 11}()", file, "exec"),
                {"remember": remember, "where": file},
            )
        else:
            exec(
                compile(f"(lambda: (0,{lines}\n{lines} remember(where)))()", file, "exec"),
                {"remember": remember, "where": file},
            )
    for number in range(2000):  # nothing differs but two characters of the file's name
        file = f"<cell {number % 90 + 10}>"
        exec(compile("remember(where)", file, "exec"), {"remember": remember, "where": file})
        del file
    assert reused > 500, reused


def case_nothing_of_it_is_seen():
    modules, enabled, seen = set(sys.modules), gc.isenabled(), []

    def watch(frame, event, argument):
        seen.append(frame.f_code.co_filename)
        return watch

    sys.settrace(watch)
    sys.setprofile(watch)
    for _ in range(300):
        probe(free)
    state = held.probe_python_state()
    sys.settrace(None)
    sys.setprofile(None)
    assert seen and "<faultline>" not in seen
    assert state == (ALWAYS if sys.version_info >= (3, 11) else NOT_YET), state
    for _ in range(2000):
        probe(free)
    assert held.probe_python_state() == ALWAYS
    assert set(sys.modules) == modules and gc.isenabled() == enabled
    assert not [
        thing
        for thing in gc.get_objects()
        if getattr(getattr(thing, "__code__", None), "co_filename", "") == "<faultline>"
    ]


def case_monitoring_sees_nothing():
    if sys.version_info < (3, 12):
        return
    seen = []
    monitoring = sys.monitoring
    monitoring.use_tool_id(3, "watch")
    for event in (monitoring.events.PY_START, monitoring.events.LINE, monitoring.events.CALL):
        monitoring.register_callback(3, event, lambda code, *_: seen.append(code.co_filename))
    monitoring.set_events(3, monitoring.events.PY_START | monitoring.events.LINE | monitoring.events.CALL)
    learn()
    all_kinds(free)
    monitoring.set_events(3, 0)
    assert len(seen) > 100 and "<faultline>" not in seen


def case_after_fork():
    learn()
    child = os.fork()
    if child == 0:
        held.probe_after_fork()
        status = 1
        try:
            all_kinds(free)
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0


def case_at_exit():
    learn()

    class Late:
        def __del__(self, probe=probe, free=free, held=held, local=local):
            probe(free)
            probe(held)

    def daemon():
        while True:
            probe(free)
            time.sleep(0)

    sys.late = Late()
    sys.late.itself = sys.late
    atexit.register(lambda: check(free) and check(held))
    for _ in range(3):
        threading.Thread(target=daemon, daemon=True).start()
    time.sleep(0.05)


def case_cost():
    """No test, but for scripts/bench/costs.py."""
    learn()

    def cost(depth):
        return cost(depth - 1) if depth else min(free.probe_python_cost(2000) for _ in range(9))

    def walk(depth):
        """What the interpreter itself takes for the same."""
        if depth:
            return walk(depth - 1)
        times = []
        for _ in range(9):
            begin = time.perf_counter_ns()
            for _ in range(200):
                expected_from(sys._getframe())
            times.append((time.perf_counter_ns() - begin) / 200)
        return min(times)

    base = len(expected_from(sys._getframe()))
    for depth in (10, 30):
        read, walked = cost(depth - base), walk(depth - base)
        print(
            "python %d.%d: %.0f ns at depth %d, walked in Python %.0f ns" % (*sys.version_info[:2], read, depth, walked)
        )


globals()["case_" + sys.argv[2]]()
