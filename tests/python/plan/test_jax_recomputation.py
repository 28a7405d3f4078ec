"""jax.checkpoint outside of scans: what it saves without XLA's compiler for GPUs, and where it is offered. The numbers are what XLA's compiler for an H200 says (JAX 0.11.2)."""

import sys
import types

import pytest
from test_jax import HEAD, dry_run, pytestmark  # noqa: F401

from faultline.plan.jax.remedies import recomputation

MIB = 1 << 20
MLP = (
    "import functools\nL, B, D = 12, 8192, 1024\n{above}def layer(x, p):\n    return x + jnp.tanh(jnp.sin(x @ p['a']) @ p['b'])\n"
    "def loss(params, x):\n    for p in params:\n        x = layer(x, p)\n    return (x ** 2).mean()\n@jax.jit\ndef step(params, x):\n    l, g = jax.value_and_grad(loss)(params, x)\n"
    "    return jax.tree.map(lambda p, g: p - .1 * g, params, g), l\nparams = [{{'a': jnp.ones((D, 4 * D)), 'b': jnp.ones((4 * D, D))}} for _ in range(L)]\nx = jnp.ones((B, D))\nfor _ in range(2):\n    params, l = step(params, x)\n"
)
WATCH = "from faultline.plan.jax import executions\nE = executions.Executions\nask = E._compile\ndef asked(self, known, jaxpr):\n    size = ask(self, known, jaxpr)\n    if known.name == 'step': print(*(n >> 20 for n in (size.least, int(size), size.most)))\n    return size\nE._compile = asked\n"


@pytest.fixture
def plan(binary, tmp_path):
    return lambda program, **options: dry_run(binary, tmp_path, HEAD + program, framework="jax", **options)


@pytest.mark.parametrize(
    "above, mebibytes",
    [
        ("", 2432),
        ("@jax.checkpoint\n", 672),
        ("@functools.partial(jax.checkpoint, policy=jax.checkpoint_policies.dots_saveable)\n", 2432),
        ("@functools.partial(jax.checkpoint, policy=jax.checkpoint_policies.everything_saveable)\n", 3872),
        ("@functools.partial(jax.checkpoint, prevent_cse=False)\n", 2432),
    ],
    ids=["without", "with", "products are kept", "all is kept", "the compiler may undo it"],
)
def test_the_truth_of_a_gpu_lies_within_what_is_estimated(plan, above, mebibytes):
    ran = plan(WATCH + MLP.format(above=above))
    assert ran.status == 0, ran.err
    least, likely, most = map(int, ran.out.split())
    assert least <= mebibytes <= most
    assert most - least < 2.5 * mebibytes and abs(likely - mebibytes) < 0.75 * mebibytes + 128


LOOP = "ws = [jnp.ones((64, 64)) for _ in range(6)]\n"
OFFERED = {
    "a function in a loop": ("def layer(x, w): return jnp.tanh(x @ w)\ndef loss(ws):\n    x = ws[0]\n    for w in ws: x = layer(x, w)\n    return x.sum()\ng = jax.grad(loss)(ws)\n", ["layer@program.py:6"]),
    "one that calls another": ("def inner(x): return jnp.tanh(x)\ndef layer(x, w): return inner(inner(inner(x @ w)))\ndef loss(ws):\n    x = ws[0]\n    for w in ws: x = layer(x, w)\n    return x.sum()\ng = jax.jit(jax.grad(loss))(ws)\n", ["layer@program.py:7"]),
    "a method": ("class Layer:\n    def __init__(self, w): self.w = w\n    def __call__(self, x, w): return jnp.tanh(x @ w)\nlayers = [Layer(w) for w in ws]\ndef loss(ws):\n    x = ws[0]\n    for l, w in zip(layers, ws): x = l(x, w)\n    return x.sum()\ng = jax.value_and_grad(loss)(ws)\n", ["__call__@program.py:8"]),
    "one that is computed again already": ("@jax.checkpoint\ndef layer(x, w): return jnp.tanh(x @ w)\ndef loss(ws):\n    x = ws[0]\n    for w in ws: x = layer(x, w)\n    return x.sum()\ng = jax.grad(loss)(ws)\n", []),
    "without a gradient": ("def layer(x, w): return jnp.tanh(x @ w)\nx = ws[0]\nfor w in ws: x = layer(x, w)\n", []),
    "called twice": ("def layer(x, w): return jnp.tanh(x @ w)\ndef loss(ws):\n    x = ws[0]\n    for w in ws[:2]: x = layer(x, w)\n    return x.sum()\ng = jax.grad(loss)(ws)\n", []),
}  # fmt: skip


@pytest.mark.parametrize("case", OFFERED)
def test_it_is_offered_for_layers_that_are_called_again_and_again(plan, case):
    program, expected = OFFERED[case]
    ran = plan(LOOP + program)
    assert ran.status == 0, ran.err
    assert [offer["value"] for offer in ran.summary["offers"] if offer["name"] == "recompute"] == expected


@pytest.mark.parametrize("case", ["a function in a loop", "a method"])
def test_the_trial_computes_them_again(plan, case):
    program, (offered,) = OFFERED[case]
    computed = (
        "import re\nprint(len(re.findall(r'\\b(?:checkpoint|remat2?)\\[', str(jax.make_jaxpr(jax.grad(loss))(ws)))))\n"
    )
    tried = plan(LOOP + program + computed, changes={"recompute": offered})
    assert tried.summary["changes"]["recompute"].startswith(offered.partition("@")[0]), tried.err
    assert int(tried.out) >= 6


def test_the_diff_puts_it_above_the_function(plan):
    ran = plan(MLP.format(above=""))
    (offer,) = [offer for offer in ran.summary["offers"] if offer["name"] == "recompute"]
    assert [edit["new"] for edit in offer["edits"]] == [["@jax.checkpoint"]]


def test_the_trial_looks_for_the_function_until_it_has_it(monkeypatch):
    module = types.ModuleType("a_program")
    monkeypatch.setitem(sys.modules, "jax", types.ModuleType("jax"))
    exec(compile("def block(x): return x\n", "/nowhere/a_program.py", "exec"), vars(module))
    looked = []
    monkeypatch.setattr(
        recomputation, "_own_modules", lambda: looked.append(1) or ([module] if len(looked) > 2 else [])
    )
    block, watched = module.block, recomputation.Recomputation("block@a_program.py:1").watched(lambda: None)
    watched()
    watched()
    assert module.block is block and len(looked) == 2
    watched()
    assert module.block is not block
    count = len(looked)
    watched()
    assert len(looked) == count
