"""Decoding with a cache that is updated in place by donation; generation one token at a time."""

from functools import partial

import jax
import jax.numpy as jnp

LAYERS, HEADS, SIZE, LENGTH, BATCH, VOCAB = 16, 16, 64, 2048, 8, 32000
D = HEADS * SIZE


@partial(jax.jit, donate_argnums=1)
def decode(params, cache, token, position):
    x = params["embed"][token]
    keys, values = cache

    def layer(carry, inputs):
        x, keys, values, number = carry
        p = inputs
        q, k, v = jnp.split(x @ p["qkv"], 3, -1)
        q, k, v = (t.reshape(BATCH, HEADS, SIZE) for t in (q, k, v))
        keys = jax.lax.dynamic_update_slice(keys, k[None, :, None], (number, 0, position, 0, 0))
        values = jax.lax.dynamic_update_slice(values, v[None, :, None], (number, 0, position, 0, 0))
        mine, held = keys[number], values[number]
        scores = jnp.einsum("bhd,bthd->bht", q, mine) / SIZE**0.5
        scores = jnp.where(jnp.arange(LENGTH) <= position, scores, -1e9)
        x = x + jnp.einsum("bht,bthd->bhd", jax.nn.softmax(scores), held).reshape(BATCH, D) @ p["out"]
        return (x, keys, values, number + 1), None

    (x, keys, values, _), _ = jax.lax.scan(layer, (x, keys, values, 0), params["layers"])
    return (keys, values), jnp.argmax(x @ params["embed"].T, -1)


key = jax.random.key(0)
params = {
    "embed": jax.random.normal(key, (VOCAB, D), jnp.bfloat16),
    "layers": {
        "qkv": jax.random.normal(key, (LAYERS, D, 3 * D), jnp.bfloat16) * 0.02,
        "out": jax.random.normal(key, (LAYERS, D, D), jnp.bfloat16) * 0.02,
    },
}
shape = (LAYERS, BATCH, LENGTH, HEADS, SIZE)
cache = (jnp.zeros(shape, jnp.bfloat16), jnp.zeros(shape, jnp.bfloat16))
token = jnp.zeros(BATCH, jnp.int32)
for position in range(32):
    cache, token = decode(params, cache, token, position)
print(token)
