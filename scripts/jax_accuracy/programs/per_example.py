"""Gradients of each example by vmap, clipped, then averaged."""

import jax
import jax.numpy as jnp


def predict(w, x):
    h = jnp.tanh(x @ w[0])
    h = jnp.tanh(h @ w[1])
    return h @ w[2]


def loss(w, x, y):
    return jnp.sum((predict(w, x) - y) ** 2)


@jax.jit
def private_gradient(w, xs, ys):
    each = jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))(w, xs, ys)
    norms = jnp.sqrt(sum(jnp.sum(g.reshape(g.shape[0], -1) ** 2, axis=1) for g in each))
    scale = jnp.minimum(1.0, 1.0 / norms)
    return [jnp.mean(g * scale.reshape(-1, *([1] * (g.ndim - 1))), axis=0) for g in each]


key = jax.random.key(0)
w = [jax.random.normal(key, s) * 0.1 for s in ((784, 1024), (1024, 1024), (1024, 10))]
xs, ys = jax.random.normal(key, (512, 784)), jax.random.normal(key, (512, 10))
for _ in range(3):
    w = [a - 0.1 * g for a, g in zip(w, private_gradient(w, xs, ys))]
print(w[2].sum())
