"""A gated recurrent cell unrolled by scan over long sequences, trained with Adagrad."""

import jax
import jax.numpy as jnp

HIDDEN, INPUT, STEPS, BATCH = 1024, 256, 400, 128


def cell(params, h, x):
    z = jax.nn.sigmoid(x @ params["xz"] + h @ params["hz"])
    n = jnp.tanh(x @ params["xn"] + (h * z) @ params["hn"])
    h = (1 - z) * h + z * n
    return h, h


def loss(params, xs, ys):
    _, hs = jax.lax.scan(lambda h, x: cell(params, h, x), jnp.zeros((BATCH, HIDDEN)), xs)
    return jnp.mean((hs @ params["o"] - ys) ** 2)


@jax.jit
def step(params, sums, xs, ys):
    grads = jax.grad(loss)(params, xs, ys)
    sums = jax.tree.map(lambda s, g: s + g * g, sums, grads)
    return jax.tree.map(lambda p, s, g: p - 0.01 * g / jnp.sqrt(s + 1e-6), params, sums, grads), sums


k = jax.random.split(jax.random.key(3), 8)
params = {
    "xz": jax.random.normal(k[0], (INPUT, HIDDEN)) * 0.05,
    "hz": jax.random.normal(k[1], (HIDDEN, HIDDEN)) * 0.05,
    "xn": jax.random.normal(k[2], (INPUT, HIDDEN)) * 0.05,
    "hn": jax.random.normal(k[3], (HIDDEN, HIDDEN)) * 0.05,
    "o": jax.random.normal(k[4], (HIDDEN, 8)) * 0.05,
}
sums = jax.tree.map(jnp.zeros_like, params)
xs = jax.random.normal(k[5], (STEPS, BATCH, INPUT))
ys = jax.random.normal(k[6], (STEPS, BATCH, 8))
for _ in range(4):
    params, sums = step(params, sums, xs, ys)
print(float(params["o"].sum()))
