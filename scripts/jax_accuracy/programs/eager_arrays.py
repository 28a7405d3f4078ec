"""No jit: arrays made, combined and dropped one by one, as in a notebook."""

import jax.numpy as jnp

a = jnp.ones((8192, 8192))
b = jnp.arange(8192 * 8192, dtype=jnp.float32).reshape(8192, 8192)
c = a @ b
d = jnp.concatenate([a, b, c], axis=0)
del a, b
e = d[::2] * 2.0
f = jnp.sort(e, axis=1)
rows = [f[i] for i in range(64)]
del d
g = jnp.stack(rows)
print(float(g.sum()), f.shape, c.shape)
