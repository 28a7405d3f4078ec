"""The same kind of network with momentum, its old parameters donated to the step."""

from functools import partial

import jax
import jax.numpy as jnp

sizes = [1024, 8192, 8192, 8192, 10]


def forward(params, x):
    *hidden, last = params
    for w, b in hidden:
        x = jax.nn.relu(x @ w + b)
    w, b = last
    return x @ w + b


def cross_entropy(params, x, labels):
    logits = jax.nn.log_softmax(forward(params, x))
    return -jnp.mean(jnp.take_along_axis(logits, labels[:, None], axis=1))


@partial(jax.jit, donate_argnums=(0, 1))
def update(params, momentum, x, labels):
    grads = jax.grad(cross_entropy)(params, x, labels)
    momentum = jax.tree.map(lambda mo, g: 0.9 * mo + g, momentum, grads)
    return jax.tree.map(lambda p, mo: p - 0.01 * mo, params, momentum), momentum


key = jax.random.PRNGKey(0)
params = []
for n_in, n_out in zip(sizes, sizes[1:]):
    key, sub = jax.random.split(key)
    params.append((jax.random.normal(sub, (n_in, n_out)) / n_in**0.5, jnp.zeros((n_out,))))
momentum = jax.tree.map(jnp.zeros_like, params)
x = jax.random.normal(key, (8192, 1024))
labels = jax.random.randint(key, (8192,), 0, 10)
for _ in range(6):
    params, momentum = update(params, momentum, x, labels)
jax.block_until_ready(params)
