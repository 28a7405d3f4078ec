"""Keeps every step's activations in a list: it grows by 64 MiB a step."""

import jax
import jax.numpy as jnp


@jax.jit
def features(w, x):
    return jnp.tanh(x @ w)


w = jax.random.normal(jax.random.key(0), (1024, 4096))
history = []
for step in range(24):
    x = jax.random.normal(jax.random.key(step), (4096, 1024))
    history.append(features(w, x))
print(len(history), float(history[-1].mean()))
