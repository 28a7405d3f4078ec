"""Dry runs of JAX programs: what is on the GPU, from when until when, by which line; what is computed and what is not; how it fails. One interpreter with JAX, forked for each case."""

import os
import re
import subprocess
import sys
import types

import pytest
from common import ROOT
from dry import T4, dry_run, interpreter_with

sys.path.insert(0, str(ROOT / "python"))
from faultline.plan.jax.functions import gpu_compiler  # noqa: E402

pytestmark = [
    pytest.mark.skipif(
        interpreter_with("jax") is None,
        reason="JAX is not installed (FAULTLINE_JAX_PYTHON names an interpreter that has it)",
    ),
    pytest.mark.xdist_group("jax"),
]
MIB = 1 << 20
HEAD = "import jax, jax.numpy as jnp\nimport numpy as np\ndevice = jax.devices()[0]\nused = lambda: device.memory_stats()['bytes_in_use']\n"
MESH = "from jax.sharding import Mesh, NamedSharding, PartitionSpec as P\nmesh = Mesh(np.array(jax.devices()), ('x',))\nsplit, whole = NamedSharding(mesh, P('x')), NamedSharding(mesh, P())\n"


@pytest.fixture
def plan(binary, tmp_path):
    def run(program, **options):
        return dry_run(binary, tmp_path, HEAD + program, framework="jax", **options)

    return run


# What the program prints: bytes in use in MiB at each look. A case, and how it would differ were something missed.
HELD = {
    "arrays are held while they live": ("a = jnp.ones((1024, 1024))\nprint(used() >> 20)\ndel a\nprint(used() >> 20)", "4 0"),
    "of half the type, half": ("a = jnp.ones((1024, 1024), jnp.bfloat16)\nprint(used() >> 20)", "2"),
    "from the host": ("a = jnp.asarray(np.ones((1024, 1024), np.float32))\nb = jax.device_put(np.ones(1 << 20, np.float32))\nprint(used() >> 20)", "8"),
    "put where it is already it shares": ("a = jnp.ones(1 << 20)\nb = jax.device_put(a, device)\nprint(used() >> 20)\ndel a\nprint(used() >> 20)\ndel b\nprint(used() >> 20)", "4 4 0"),
    "deleted by its own word": ("a = jnp.ones(1 << 20)\na.delete()\nprint(used() >> 20)", "0"),
    "a result of a function": ("f = jax.jit(lambda x: x * 2)\na = jnp.ones(1 << 20)\nb = f(a)\nb = f(a)\nprint(used() >> 20)", "8"),
    "a donated argument gives its memory": ("f = jax.jit(lambda x: x * 2, donate_argnums=0)\na = jnp.ones(1 << 20)\nfor _ in range(3):\n    a = f(a)\nprint(used() >> 20)", "4"),
    "its clean twin without donation": ("f = jax.jit(lambda x: x * 2)\na = jnp.ones(1 << 20)\nb = a\nfor _ in range(3):\n    a = f(a)\nprint(used() >> 20)", "8"),
    "donated, and small enough to compute": ("f = jax.jit(lambda x: x * 2, donate_argnums=0)\na = jnp.ones(64)\nb = f(a)\nprint(used(), a.is_deleted(), float(b[0]))", "256 True 2.0"),
    "a scan's stacked results": ("xs = jnp.ones((16, 1 << 16))\n_, ys = jax.lax.scan(lambda c, x: (c, x + c), jnp.zeros(1 << 16), xs)\ndel xs, _\nprint(used() >> 20)", "4"),
    "compiled ahead": ("c = jax.jit(lambda x: x @ x).lower(jax.ShapeDtypeStruct((1024, 1024), jnp.float32)).compile()\na = jnp.ones((1024, 1024))\nb = c(a)\nprint(used() >> 20)", "8"),
    "random numbers": ("a = jax.random.normal(jax.random.key(0), (1 << 21,))\nprint(used() >> 20)", "8"),
    "gradients": ("w = jnp.ones((1024, 1024))\ng = jax.grad(lambda w: (w @ w).sum())(w)\nprint(used() >> 20)", "8"),
    "over a mesh of one": (
        "from jax.sharding import Mesh, NamedSharding, PartitionSpec as P\nmesh = Mesh(np.array(jax.devices()), ('x',))\na = jax.device_put(np.ones(1 << 20, np.float32), NamedSharding(mesh, P('x')))\n"
        "b = jax.jit(lambda x: x + 1)(a)\nprint(used() >> 20, b.sharding.mesh.size)",
        "8 1",
    ),
    "pmap of one": ("a = jax.pmap(lambda x: x + 1)(jnp.ones((1, 1 << 20)))\nprint(used() >> 20)", "4"),
    **{
        f"a mesh: {name}": (MESH + code + "\nprint(used() >> 20)", expected)
        for name, code, expected in (
            ("put onto it, the array shares", "a = jnp.ones(1 << 20)\nb = jax.device_put(a, split)\nprint(used() >> 20)\ndel a\nprint(used() >> 20)\ndel b", "4 4 0"),
            ("put onto it, the array's first object is gone", "b = jax.device_put(jnp.ones(1 << 20), whole)\nprint(used() >> 20)\ndel b", "4 0"),
            ("put onto another, and back", "a = jax.device_put(jnp.ones(1 << 20), split)\na = jax.device_put(a, whole)\na = jax.device_put(a, device)", "4"),
            ("put as a copy", "a = jnp.ones(1 << 20)\nb = jax.device_put(a, split, may_alias=False)\nprint(used() >> 20)\ndel a", "8 4"),
            ("put as a copy where it is", "a = jnp.ones(1 << 20)\nb = jax.device_put(a, device, may_alias=False)\ndel a", "4"),
            ("put and given away", "a = jnp.ones(1 << 20)\nb = jax.device_put(a, split, donate=True)\ndel a", "4"),
            ("results of what lies on it", "a = jax.device_put(jnp.ones((1024, 1024)), split)\nb = a @ a\nc = jax.jit(lambda x: x.T + 1)(b)\ndel a", "8"),
            ("a tree of arrays", "t = jax.device_put({'a': jnp.ones(1 << 20), 'b': [jnp.ones(1 << 19)]}, whole)\nprint(used() >> 20)\ndel t['a']", "6 2"),
            ("from the CPU by name", "c = jax.device_put(np.ones(1 << 20, np.float32), jax.devices('cpu')[0])\nprint(used())\na = jax.device_put(c, split)\ndel c", "0 4"),
            ("to the CPU by name", "a = jax.device_put(jnp.ones(1 << 20), split)\nc = jax.device_put(a, jax.devices('cpu')[0])\ndel a", "0"),
            ("a constraint outside jit", "a = jax.lax.with_sharding_constraint(jnp.ones(1 << 20), split)", "4"),
            ("shard_map", "a = jax.shard_map(lambda x: x * 2, mesh=mesh, in_specs=P('x'), out_specs=P('x'))(jnp.ones(1 << 20))", "4"),
            ("made by a callback", "a = jax.make_array_from_callback((1 << 20,), split, lambda i: np.ones(1 << 20, np.float32)[i])", "4"),
            ("made of one array", "a = jnp.ones(1 << 20)\nb = jax.make_array_from_single_device_arrays((1 << 20,), split, [a])\ndel a\nprint(used() >> 20)\ndel b", "4 0"),
            ("made of this process's data", "a = jax.make_array_from_process_local_data(split, np.ones(1 << 20, np.float32))", "4"),
            ("a device's part", "a = jax.device_put(jnp.ones(1 << 20), split)\nb = a.addressable_data(0)\nc = a.addressable_shards[0].data\ndel a\nprint(used() >> 20)\ndel b, c", "4 0"),
            ("deleted", "a = jax.device_put(jnp.ones(1 << 20), split)\na.delete()", "0"),
            ("a mesh that is set", "with jax.set_mesh(mesh):\n    a = jax.device_put(jnp.ones(1 << 20), P('x'))\n    b = a + 1", "8"),
            ("large, put onto it one after the other", "k = [jax.device_put(jnp.ones(1 << 28), split) for _ in range(4)]", "4096"),
            ("large, as a copy", "a = jnp.ones(1 << 29)\nb = jax.device_put(a, split, may_alias=False)\nc = jnp.array(a, copy=True)", "6144"),
        )
    },
    "copied": ("a = jnp.ones(1 << 20)\nb = jnp.copy(a)\nc = a.copy()\nd = jnp.array(a)\nprint(used() >> 20)", "16"),
    "one place set, eagerly": ("a = jnp.ones(1 << 20)\nb = a.at[3].set(2.0)\ndel a\nprint(used() >> 20)", "4"),
    "a reference that is changed in place": ("r = jax.new_ref(jnp.zeros(1 << 20))\nf = jax.jit(lambda r: r.__setitem__(Ellipsis, r[...] + 1))\nfor _ in range(3): f(r)\nprint(used() >> 20)\ndel r\nprint(used() >> 20)", "4 0"),
    "on the CPU by name it is not on the GPU": ("cpu = jax.devices('cpu')[0]\na = jax.device_put(np.ones(1 << 20, np.float32), cpu)\nwith jax.default_device(cpu):\n    b = jnp.ones(1 << 20) + 1\nprint(used() >> 20)", "0"),
    "a platform that is chosen is there": ('jax.config.update("jax_platforms", "cuda")\na = jnp.ones(1 << 20)\nprint(used() >> 20)', "4"),
    "keys": ("k = jax.random.split(jax.random.key(0), 3)\nprint(used() > 0, jax.random.key_data(k).shape)", "True (3, 2)"),
    "a key out of a function that is not computed": (
        "def f(k, x):\n    k, s = jax.random.split(k)\n    return k, x @ x + jax.random.normal(s, x.shape)\nk, y = jax.jit(f)(jax.random.key(0), jnp.ones((1024, 1024)))\nprint(k.shape, y.shape, used() >> 20)",
        "() (1024, 1024) 4",
    ),
    "numbers that are small are computed": ("a = jnp.arange(10)\nprint(int(a.sum()), float(jax.jit(lambda x: x @ x)(a)), bool((a > 8).any()))", "45 285.0 True"),
    "of no bytes": ("a = jnp.zeros((0, 5))\nprint(a.sum(), used() >> 20)", "0.0 0"),
}  # fmt: skip


@pytest.mark.parametrize("case", HELD)
def test_what_is_on_the_gpu(plan, case):
    program, expected = HELD[case]
    ran = plan(program)
    assert ran.status == 0, ran.err
    assert " ".join(ran.out.split()) == expected


UNSEEN = (
    MESH
    + "from jaxlib import _jax\ndef unseen(n):\n    a = np.ones(n, np.float32)\n    return _jax.batched_device_put(jax.core.ShapedArray(a.shape, a.dtype), jax.sharding.SingleDeviceSharding(device), [a], [device], True)\n"
)


@pytest.mark.parametrize(
    "program, mebibytes",
    [
        ("a = unseen(1 << 20)\n", 4),
        ("a = unseen(1 << 20)\nb = a + 1\ndel a\n", 8),
        ("a = unseen(1 << 20)\nb = jax.jit(lambda x: x @ x)(a)\nprint(used() >> 20)\n", 4),
        ("k = [unseen(1 << 18) for _ in range(4)]\nfor _ in range(70): x = jnp.ones(4)\ndel k\n", 4),
        ("a = jnp.ones(1 << 20)\n", None),
        ("a = jax.device_put(jnp.ones(1 << 20), split)\nfor _ in range(70): b = a.addressable_data(0) + 1\n", None),
    ],
    ids=["alive at the end", "an argument", "of a function", "found on the way", "clean", "clean, over a mesh"],
)
def test_what_is_alive_and_was_not_followed_is_found_and_told(plan, program, mebibytes):
    ran = plan(UNSEEN + program)
    assert ran.status == 0, ran.err
    told = [note["verdict"] for note in ran.notes() if "counted from where" in note.get("verdict", "")]
    if mebibytes is None:
        assert not told
    else:
        assert told == ["with 4 MiB of arrays that are counted from where they were found"]
        assert ran.summary["peak_allocated"] // MIB == mebibytes


def test_the_planned_gpu_is_what_the_program_finds(plan):
    ran = plan(
        "print(jax.default_backend(), device.platform, device.device_kind, device, len(jax.devices()), jax.device_count())\nprint(device.memory_stats()['bytes_limit'], jax.devices('gpu') == jax.devices(), jax.devices('cpu')[0].platform)"
    )
    assert ran.out.splitlines()[0] == "gpu gpu Tesla T4 cuda:0 1 1"
    limit = -(-T4["capacity_bytes"] * 3 // 4) // (2 * MIB) * 2 * MIB
    assert ran.out.splitlines()[1] == f"{limit + 2 * MIB if limit < T4['capacity_bytes'] * 3 / 4 else limit} True cpu"


TOO_LARGE = "x = jnp.ones((1 << 20, 1 << 20))\n"


@pytest.mark.parametrize(
    "program",
    [TOO_LARGE, "x = jnp.ones((1 << 16, 1 << 16))\n", "f = jax.jit(lambda x: (x[:, None] * x[None, :]) @ jnp.ones((1 << 17, 2)))\nf(jnp.ones(1 << 17))\n", "k = [jnp.zeros(1 << 28) for _ in range(20)]\n"],
    ids=["4 TiB", "16 GiB", "temporaries", "a list"],
)  # fmt: skip
def test_what_does_not_fit_fails_as_jax_fails_and_costs_nothing(plan, program):
    ran = plan(program)
    assert ran.status == 1 and ran.summary["died_of_memory"] and ran.summary["ooms"] == 1
    assert ran.summary["exception"]["type"] == "JaxRuntimeError"
    assert re.search(r"RESOURCE_EXHAUSTED: Out of memory while trying to allocate [\d.]+[GT]iB", ran.err)
    finding = next(f for f in ran.report()["findings"] if f["rule"] == "memory/out-of-memory")
    assert finding["location"]["file"].endswith("program.py")


def test_the_programs_own_except_works_and_it_goes_on(plan):
    ran = plan(
        "try:\n    "
        + TOO_LARGE
        + "except jax.errors.JaxRuntimeError as problem:\n    print('caught', str(problem)[:18])\ny = jnp.ones(1 << 20)\nprint(used() >> 20)\n"
    )
    assert ran.status == 0 and ran.out.split() == ["caught", "RESOURCE_EXHAUSTED", "4"]
    assert ran.summary["ooms"] == 1 and not ran.summary["died_of_memory"]


SHARES = [({}, 0.75), ({"XLA_CLIENT_MEM_FRACTION": "0.5"}, 0.5), ({"XLA_PYTHON_CLIENT_MEM_FRACTION": "0.9"}, 0.9)]


@pytest.mark.parametrize("variables, share", SHARES)
def test_the_pool_is_a_share_of_the_gpu(plan, variables, share):
    ran = plan("print(device.memory_stats()['bytes_limit'])", variables=variables)
    assert abs(int(ran.out) - T4["capacity_bytes"] * share) <= 2 * MIB


@pytest.mark.parametrize(
    "variables, words",
    [
        ({"XLA_CLIENT_MEM_FRACTION": "0.5", "XLA_PYTHON_CLIENT_MEM_FRACTION": "0.9"}, "specified together with"),
        ({"XLA_PYTHON_CLIENT_MEM_FRACTION": "abc"}, "could not convert string to float: 'abc'"),
        ({"XLA_CLIENT_MEM_FRACTION": "half"}, "could not convert string to float: 'half'"),
    ],
    ids=["both", "no number", "no number, the newer"],
)
def test_settings_that_jax_itself_refuses_are_told_in_its_words(plan, variables, words):
    ran = plan("x = jnp.ones(1 << 20)\nprint('went on')\n", variables=variables)
    assert ran.status == 2 and "went on" not in ran.out
    refused = ran.summary["unsupported"]
    assert refused["of"] == "framework" and refused["text"].startswith("JAX refuses its settings (ValueError: ")
    assert words in refused["text"] and "computes on the CPU" in refused["text"]


@pytest.mark.parametrize(
    "variables", [{}, {"XLA_PYTHON_CLIENT_MEM_FRACTION": "0.5"}, {"XLA_CLIENT_MEM_FRACTION": "0.5"}]
)
def test_the_setting_that_the_user_has_is_the_one_that_is_advised(plan, variables):
    ran = plan("x = jnp.ones(1 << 20)\n", variables=variables)
    assert (b"dry-run.share_setting" in ran.traces[0].read_bytes()) == ("XLA_PYTHON_CLIENT_MEM_FRACTION" in variables)


@pytest.mark.parametrize("wanted, reserved", [("true", 11321), ("false", 8)])
def test_a_pool_takes_all_at_once_or_grows(plan, wanted, reserved):
    ran = plan("a = jnp.ones(1 << 20)\n", variables={"XLA_PYTHON_CLIENT_PREALLOCATE": wanted})
    assert ran.summary["peak_reserved"] // MIB == pytest.approx(reserved, abs=4)


def test_another_allocator_is_said_with_the_verdict(plan):
    ran = plan("a = jnp.ones(1 << 20)\n", variables={"XLA_PYTHON_CLIENT_ALLOCATOR": "platform"})
    assert any("no model" in note["text"] and note.get("verdict") for note in ran.notes())


@pytest.mark.parametrize(
    "program, decides",
    [
        ("x = jnp.ones((2048, 2048))\nprint(float((x @ x).sum()))", False),
        (
            "x = jnp.ones((2048, 2048))\nif (x @ x).sum() > 3:\n    y = [jnp.ones((2048, 2048)) for _ in range(10)]\n",
            True,
        ),
        ("x = jnp.ones((2048, 2048))\ny = jnp.nonzero(x @ x)\n", True),
        ("x = jnp.ones((2048, 2048))\nprint(np.asarray(x @ x).shape, np.array(x @ x).shape)\n", False),
    ],
    ids=["printed", "a branch", "a size", "as NumPy's"],
)
def test_numbers_that_are_not_computed_are_noted_where_they_are_read(plan, program, decides):
    ran = plan(program)
    assert ran.status == 0, ran.err
    assert any("does not compute" in note["text"] for note in ran.notes())
    assert any(note["kind"] == "value" and note.get("verdict") for note in ran.notes()) == decides


@pytest.mark.parametrize(
    "program, variables",
    [('jax.config.update("jax_platforms", "cpu")\n', {}), ("", {"JAX_PLATFORMS": "cpu"}), ("", {"CUDA_VISIBLE_DEVICES": "-1"})],
    ids=["by its own word", "by the environment", "without a GPU"],
)  # fmt: skip
def test_a_program_for_the_cpu_has_nothing_on_the_gpu(binary, tmp_path, program, variables):
    text = (
        "import jax, jax.numpy as jnp\n" + program + "x = jnp.ones(1 << 20) + 1\nprint(x[0], jax.default_backend())\n"
    )
    ran = dry_run(binary, tmp_path, text, framework="jax", variables=variables)
    assert ran.out.split() == ["2.0", "cpu"] and ran.summary["allocations"] == 0


def test_with_real_numbers_nothing_is_a_stand_in(plan):
    ran = plan("x = jnp.ones((512, 512))\nprint(float((x @ x).sum()))", real=True)
    assert float(ran.out) == 512.0**3
    assert not any("does not compute" in note["text"] for note in ran.notes())


def test_a_failure_of_the_programs_own_is_the_programs(plan):
    ran = plan("jnp.ones((3, 4)) @ jnp.ones((3, 4))\n")
    assert ran.status == 1 and ran.summary["exception"]["type"] == "TypeError" and not ran.summary["died_of_memory"]


def test_steps_are_calls_of_the_programs_own_function(plan):
    ran = plan("f = jax.jit(lambda x: jnp.tanh(x @ x))\nx = jnp.ones((512, 512))\nfor _ in range(6):\n    x = f(x)\n")
    assert ran.summary["steps"] == 6
    assert ran.summary["stopped"] is None


def test_it_is_stopped_after_as_many_steps_as_were_asked_for(plan):
    ran = plan(
        "f = jax.jit(lambda x: jnp.tanh(x @ x))\nx = jnp.ones((512, 512))\nfor i in range(1000):\n    x = f(x)\nprint('end')\n",
        steps=4,
    )
    assert ran.status == 0 and ran.summary["stopped"].startswith("after 4 calls of") and "end" not in ran.out
    assert ran.summary["steps"] == 4


def test_a_list_that_grows_is_a_leak(plan):
    ran = plan(
        "f = jax.jit(lambda x: jnp.tanh(x @ x))\nx = jnp.ones((1024, 1024))\nkept = []\nfor _ in range(24):\n    kept.append(f(x))\n"
    )
    leak = next(f for f in ran.report()["findings"] if f["rule"] == "memory/leak")
    assert leak["location"]["line"] == 9


def test_a_loop_that_rebinds_is_none(plan):
    ran = plan(
        "f = jax.jit(lambda x: jnp.tanh(x @ x))\nx = jnp.ones((1024, 1024))\nfor _ in range(24):\n    y = f(x)\n"
    )
    assert not any(f["rule"] == "memory/leak" for f in ran.report()["findings"])


LOOP = "f = jax.jit(lambda x: jnp.tanh(x @ x))\nx = jnp.ones((1024, 1024))\ndef train(kept):\n    for _ in range(10000):\n        {}\ntrain([])\n"


def test_what_the_stop_lets_go_was_kept_by_the_program(plan):
    ran = plan(LOOP.format("kept.append(f(x))"), steps=24)
    leak = next(f for f in ran.report()["findings"] if f["rule"] == "memory/leak")
    assert leak["severity"] == "error" and leak["location"]["line"] == 9 and ran.summary["stopped_by"] == "steps"


def test_a_loop_that_rebinds_keeps_nothing_until_the_stop(plan):
    ran = plan(LOOP.format("y = f(x)"), steps=24)
    assert ran.summary["stopped_by"] == "steps" and "memory/leak" not in ran.rules()


def test_the_temporaries_have_a_row_of_their_own(plan):
    ran = plan(
        "def attend(x):\n    return jnp.sort(jnp.sort(x @ x.T, axis=0) @ x, axis=0)\nf = jax.jit(attend)\ny = f(jnp.ones((4096, 64)))\n"
    )
    assert b"temporaries of attend (program.py:8)" in ran.traces[0].read_bytes()
    assert ran.summary["peak_allocated"] > 64 * MIB


UPDATE = "f = jax.jit(lambda state, x: jax.tree.map(lambda s: s * 0.9 + x, state))\nstate = {'a': jnp.ones(1 << 20), 'b': jnp.ones(1 << 19)}\n"
OFFERS = {
    "an old state that dies": (UPDATE + "for i in range(3):\n    state = f(state, float(i))\n", ["<lambda>:state"]),
    "one that is used afterwards": (UPDATE + "for i in range(3):\n    old = state\n    state = f(old, float(i))\n    d = state['a'] - old['a']\n", []),
    "one that is read afterwards": (UPDATE + "for i in range(3):\n    old = state\n    state = f(old, float(i))\n    print(float(np.asarray(old['b'])[0]))\n", []),
    "one that every call gets": (UPDATE + "for i in range(3):\n    y = f(state, float(i))\n", []),
    "donated already": (UPDATE.replace(", state))", ", state), donate_argnums=0)") + "for i in range(3):\n    state = f(state, float(i))\n", []),
    "of another shape than any result": ("f = jax.jit(lambda x: x.sum())\nfor i in range(3):\n    y = f(jnp.ones(1 << 20))\n", []),
    "a vmap of many": ("g = jax.jit(jax.vmap(lambda a, b: jnp.sort(a[:, None] + b[None, :], axis=1).sum()))\ny = g(jnp.ones((64, 128)), jnp.ones((64, 128)))\n", ["program.py:5:16", "program.py:5:4"]),
    "a vmap of some, in no groups of one": ("g = jax.vmap(lambda a: a.sum())\ny = g(jnp.ones((20, 128)))\n", ["program.py:5:5"]),
    "two vmaps": ("f = jax.vmap(lambda a: a.sum())\ng = jax.vmap(lambda a: a.max())\nx, y = f(jnp.ones((20, 128))), g(jnp.ones((40, 128)))\n", ["program.py:5:5", "program.py:6:10", "program.py:6:2"]),
    "a vmap of few": ("g = jax.vmap(lambda a: a.sum())\ny = g(jnp.ones((8, 128)))\n", []),
    "a vmap over other axes": ("g = jax.vmap(lambda a: a.sum(), in_axes=1)\ny = g(jnp.ones((128, 64)))\n", []),
    "a scan with a gradient": ("g = jax.grad(lambda w: jax.lax.scan(lambda c, x: (jnp.tanh(c * w + x), None), jnp.zeros(8), jnp.ones((4, 8)))[0].sum())(jnp.ones(8))\n", ["true"]),
    "a scan without": ("c, y = jax.lax.scan(lambda c, x: (c + x, c), jnp.zeros(8), jnp.ones((4, 8)))\n", []),
}  # fmt: skip


@pytest.mark.parametrize("case", OFFERS)
def test_changes_are_offered_where_what_was_seen_allows_them(plan, case):
    program, expected = OFFERS[case]
    ran = plan(program)
    assert ran.status == 0, ran.err
    assert [offer["value"] for offer in ran.summary["offers"]] == expected


@pytest.mark.parametrize(
    "case, change, done",
    [
        ("an old state that dies", {"donate": "<lambda>:state"}, "donate"),
        ("a vmap of many", {"map": "program.py:5:4"}, "map"),
        ("a vmap of many", {"map": "program.py:6:4"}, None),
        ("two vmaps", {"map": "program.py:6:10"}, "map"),
        ("a scan with a gradient", {"remat": "true"}, "remat"),
        ("an old state that dies", {"donate": "another:state"}, None),
    ],
)
def test_a_change_that_is_tried_is_made_or_not_said_to_be(plan, tmp_path, case, change, done):
    program = OFFERS[case][0] + "print(used())\n"
    ran = plan(program, changes=change)
    assert ran.status == 0, ran.err
    assert list(ran.summary["changes"]) == ([done] if done else [])
    if done == "map":
        line, _, group = change["map"].rpartition(":")
        assert re.fullmatch(rf"{group} of \d+ at a time \({line}\)", ran.summary["changes"]["map"])
    if "donate" in change:  # both states lie beside each other where the old one is not given away
        assert (ran.summary["peak_allocated"] // MIB == 6) if done else (ran.summary["peak_allocated"] // MIB >= 12)


def test_a_vmap_of_another_line_is_left_as_it_is(plan):
    count = "done, before = [], jax.lax.map\njax.lax.map = lambda *a, **k: (done.append(k), before(*a, **k))[1]\n"
    program = count + OFFERS["two vmaps"][0] + "print([k['batch_size'] for k in done])\n"
    ran = plan(program, changes={"map": "program.py:8:10"})
    assert ran.out.split("\n")[0] == "[10]", ran.out + ran.err


@pytest.mark.parametrize("row", gpu_compiler._BANDWIDTHS, ids=lambda row: row[0])
def test_every_row_of_the_bandwidths_is_reached_by_its_own_word(row):
    assert gpu_compiler.bandwidth_of(f"NVIDIA {row[0]}") == row[1]


@pytest.mark.parametrize(
    "name, bandwidth",
    [
        ("NVIDIA GH200 480GB", 4000),
        ("NVIDIA H200 NVL", 4800),
        ("NVIDIA H20-3e", 4000),
        ("NVIDIA RTX A4000", 448),
        ("NVIDIA A40-48Q", 696),
        ("NVIDIA A10G", 600),
        ("NVIDIA A100-SXM4-40GB", 1555),
        ("NVIDIA A100-SXM-64GB", 0),
        ("NVIDIA L40S", 864),
        ("NVIDIA H100 80GB HBM3", 0),
        ("NVIDIA T400", 0),
        ("", 0),
    ],
)
def test_a_card_is_not_taken_for_one_whose_name_is_a_part_of_its_own(name, bandwidth):
    assert gpu_compiler.bandwidth_of(name) == bandwidth


@pytest.mark.parametrize("problem, words", [(RuntimeError(), "RuntimeError"), (ValueError("\n"), "ValueError"), (KeyError("one\ntwo"), r"KeyError: 'one\ntwo'"), (OSError("one\ntwo"), "OSError: one")])  # fmt: skip
def test_a_compiler_that_fails_without_words_is_told_by_its_type(monkeypatch, problem, words):
    def fails(_gpu):
        raise problem

    topologies = types.ModuleType("jax.experimental")
    topologies.topologies = types.SimpleNamespace(get_topology_desc=None)
    monkeypatch.setitem(sys.modules, "jax.experimental", topologies)
    monkeypatch.setattr(gpu_compiler, "plugin", lambda: "jax-cuda13-plugin 0.11.2")
    monkeypatch.setattr(gpu_compiler, "description_of", fails)
    assert gpu_compiler.GpuCompiler(None).why_not.endswith(f"({words})")


def test_what_goes_wrong_inside_is_no_error_of_the_programs_and_no_verdict(plan):
    broken = "from faultline.plan.jax import executions\nexecutions.Executions._stand_ins = lambda *_: 1 / 0\n"
    ran = plan(broken + "x = jnp.ones((1024, 1024))\nprint(float((x @ x)[0, 0]))\n")
    assert ran.out.split() == ["1024.0"] and "ZeroDivisionError" in ran.summary["unplanned"]["text"]


def test_nothing_is_begun_before_the_program_begins_it(binary, tmp_path):
    text = "import jax\nfrom jax._src import xla_bridge\nprint(len(xla_bridge._backends))\njax.config.update('jax_num_cpu_devices', 3)\nprint(len(jax.devices()))\n"
    ran = dry_run(binary, tmp_path, text, framework="jax")
    assert ran.out.split() == ["0", "1"], ran.err


def test_a_function_of_a_running_program(binary, tmp_path):
    (tmp_path / "program.py").write_text(
        "import faultline, jax.numpy as jnp\n"
        "plan = faultline.plan(lambda: jnp.ones((1024, 1024)) @ jnp.ones((1024, 1024)), gpu='T4')\nprint(plan.fits)\n"
        "plan = faultline.plan(lambda: jnp.ones((1 << 17, 1 << 17)), gpu='T4')\nprint(plan.fits, plan.needed_bytes >> 30)\n"
        "jnp.ones(3)\ntry:\n    faultline.plan(lambda: jnp.ones(3), gpu='T4')\nexcept ValueError as problem:\n    print('computed in this process already' in str(problem), '--real' not in str(problem))\n"
    )
    done = subprocess.run(
        [interpreter_with("jax"), str(tmp_path / "program.py")],
        env={**os.environ, "PYTHONPATH": str(ROOT / "python"), "FAULTLINE": binary},
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == ["True", "False", "85", "True", "True"], done.stderr
    assert "os.fork" not in done.stderr


def test_nor_is_it_in_a_function_that_was_compiled_ahead(plan):
    broken = "from faultline.plan.jax import executions\nexecutions.Constants = lambda *_: 1 / 0\n"
    ran = plan(
        "x = jnp.ones((1024, 1024))\n"
        + "f = jax.jit(lambda x: (x @ x)[0, 0]).lower(x).compile()\n"
        + broken
        + "print(float(f(x)))\n"
    )
    assert ran.out.split() == ["1024.0"] and "ZeroDivisionError" in ran.summary["unplanned"]["text"], ran.err


KERNEL = "from jax.experimental import pallas as pl\ndef double(x, y): y[...] = x[...] * 2\n@jax.jit\ndef f(x): return (PART @ x.T).sum()\nf(jnp.ones((4096, 4096)))\n"


@pytest.mark.parametrize(
    "part", ["pl.pallas_call(double, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)", "(x * 2)"]
)
def test_what_cannot_be_compiled_here_has_no_verdict(plan, part):
    ran = plan(KERNEL.replace("PART", part))
    assert ran.status == 0, ran.err
    assert (ran.summary["unplanned"] is not None) == ("pallas" in part)
    assert "pallas" not in part or "what f takes beside its results is not known" in ran.summary["unplanned"]["text"]
