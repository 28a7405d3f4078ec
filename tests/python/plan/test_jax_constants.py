"""Arrays that a compiled function closes over: each compiled program has a copy of its own, beside the pool. Every case was run on an H200, where the driver's memory beside the pool grew by as much."""

import pytest
from test_jax import HEAD, MESH, dry_run, pytestmark  # noqa: F401

WATCH = (
    "import gc\nfrom faultline.plan.session import pool_session\ntook, gone = {}, []\nS = pool_session.PoolSession\ntake, give = S.take_outside, S.give_back\n"
    "def taken(s, size, *a):\n    n = take(s, size, *a)\n    took[n] = size\n    return n\n"
    "def given(s, n):\n    if n in took: gone.append(took[n])\n    give(s, n)\nS.take_outside, S.give_back = taken, given\n"
    "host = lambda *shape: np.random.default_rng(0).random(shape or (1024, 1024), dtype=np.float32)\nx = jnp.ones((8, 1024))\n"
)
CLOSES = "w = jnp.asarray(host())\nf = jax.jit(lambda x: x @ w)\ny = f(x)\n"
CASES = {
    "called again": (CLOSES + "y = f(x)", [4]),
    "given as an argument": ("w = jnp.asarray(host())\nf = jax.jit(lambda x, w: x @ w)\ny = f(x, w)", []),
    "in two functions": (CLOSES + "g = jax.jit(lambda x: jnp.tanh(x @ w))\ny = g(x)", [4, 4]),
    "of two shapes": (CLOSES + "y = f(jnp.ones((16, 1024)))", [4, 4]),
    "NumPy's": ("w = host()\nf = jax.jit(lambda x: x @ w)\ny = f(x)\ny = f(x)", [4]),
    "NumPy's, put there inside": ("w = host()\nf = jax.jit(lambda x: x @ jnp.asarray(w))\ny = f(x)", [4]),
    "of half the type": ("w = jnp.asarray(host(), jnp.bfloat16)\nf = jax.jit(lambda x: x @ w)\ny = f(x)", [2]),
    "the same everywhere": ("w = jnp.ones((1024, 1024))\nf = jax.jit(lambda x: x @ w)\ny = f(x)", []),
    "the same everywhere, not computed": ("w = jnp.full((1 << 14, 1024), 3.0)\nf = jax.jit(lambda x: x @ w.T)\ny = f(x)", []),
    "the same everywhere, NumPy's": ("w = np.ones((1024, 1024), np.float32)\nf = jax.jit(lambda x: x @ w)\ny = f(x)", []),
    "not computed": ("w = jax.random.normal(jax.random.key(0), (4096, 2048))\nf = jax.jit(lambda x: x @ w)\ny = f(jnp.ones((8, 4096)))", [32]),
    "computed with while compiling": ("w = jnp.asarray(host())\nf = jax.jit(lambda x: x @ jnp.sin(w).astype(jnp.bfloat16).astype(jnp.float32))\ny = f(x)", [4]),
    "made smaller while compiling": ("w = jnp.asarray(host())\nf = jax.jit(lambda x: x * w.sum())\ny = f(x)", []),
    "cut while compiling": ("w = jnp.asarray(host())\nf = jax.jit(lambda x: x @ w[:, :256])\ny = f(x)", [1]),
    "of a scan's body": ("w = jnp.asarray(host())\nf = jax.jit(lambda c: jax.lax.scan(lambda c, _: (jnp.tanh(c @ w), None), c, None, length=4)[0])\ny = f(x)", [4]),
    "of a scan outside jit": ("w = jnp.asarray(host())\ny = jax.lax.scan(lambda c, _: (jnp.tanh(c @ w), None), x, None, length=4)[0]", []),
    "of a function inside, called twice": ("w = jnp.asarray(host())\ninner = jax.jit(lambda x: x @ w)\nf = jax.jit(lambda x: inner(x) + inner(x + 1))\ny = f(x)", [4]),
    "differentiated": ("w = jnp.asarray(host())\nf = jax.jit(jax.grad(lambda x: jnp.tanh(x @ w).sum()))\ny = f(x)", [4]),
    "under vmap": ("w = jnp.asarray(host())\nf = jax.jit(jax.vmap(lambda x: x @ w))\ny = f(x)", [4]),
    "under pmap": ("w = jnp.asarray(host())\nf = jax.pmap(lambda x: x @ w)\ny = f(x[None])", [4]),
    "under jax.checkpoint": ("w = jnp.asarray(host())\nf = jax.jit(jax.grad(jax.checkpoint(lambda x: jnp.tanh(x @ w).sum())))\ny = f(x)", [4]),
    "compiled ahead": ("w = jnp.asarray(host())\nf = jax.jit(lambda x: x @ w).lower(x).compile()\ny = f(x)\ny = f(x)", [4]),
    "small": ("w = jnp.arange(8.0)\nf = jax.jit(lambda x: x[:, :8] * w)\ny = f(x)", []),
    "many": ("ws = [jnp.asarray(host(256, 1024)) for _ in range(8)]\nf = jax.jit(lambda x: sum(x @ w.T for w in ws).sum())\ny = f(x)", [8]),
}  # fmt: skip


@pytest.fixture
def plan(binary, tmp_path):
    return lambda program, **options: dry_run(binary, tmp_path, HEAD + WATCH + program, framework="jax", **options)


@pytest.mark.parametrize("case", CASES)
def test_constants_are_counted_once_for_each_compiled_program(plan, case):
    program, mebibytes = CASES[case]
    ran = plan(program + "\nprint([size >> 20 for size in took.values()])\n")
    assert ran.status == 0, ran.err
    assert ran.out == f"{mebibytes}\n"


def test_they_go_with_the_function_and_the_array_stays(plan):
    ran = plan(
        CLOSES + "before = used()\ndel f, y\ngc.collect()\nprint(gone == list(took.values()), used() >= 4 << 20)\n"
    )
    assert ran.out.split() == ["True", "True"], ran.err


def test_an_array_that_a_function_keeps_stays_where_it_is(plan):
    ran = plan(
        CLOSES
        + "before = used()\ndel w\ngc.collect()\nprint(before == used())\ndel f\ngc.collect()\nprint(before - used() >> 20)\n"
    )
    assert ran.out.split() == ["True", "4"], ran.err


LARGE = "w = jax.random.normal(jax.random.key(0), (1 << 20, 1024))\nf = jax.jit(lambda x: x @ w)\ny = f(jnp.ones((8, 1 << 20)))\n"


def test_what_has_no_room_beside_the_pool_fails_as_jax_fails(plan):
    ran = plan(LARGE)
    assert ran.status == 1 and ran.summary["died_of_memory"]
    assert "RESOURCE_EXHAUSTED: Failed to load in-memory CUBIN" in ran.err


@pytest.mark.parametrize(
    "is_named, offered", [(False, []), (True, ["f"])], ids=["a lambda, which has no name", "a function"]
)
def test_it_fits_beside_a_smaller_pool_and_arguments_are_offered(plan, is_named, offered):
    program = LARGE.replace("f = jax.jit(lambda x: x @ w)", "@jax.jit\ndef f(x): return x @ w") if is_named else LARGE
    ran = plan(program, variables={"XLA_CLIENT_MEM_FRACTION": "0.6"})
    assert ran.status == 0, ran.err
    assert [offer["value"] for offer in ran.summary["offers"] if offer["name"] == "arguments"] == offered


def test_given_as_an_argument_it_fits(plan):
    named = LARGE.replace("f = jax.jit(lambda x: x @ w)", "@jax.jit\ndef f(x): return x @ w")
    ran = plan(named, changes={"arguments": "f"})
    assert ran.status == 0 and ran.summary["changes"] == {"arguments": "f"}, ran.err
