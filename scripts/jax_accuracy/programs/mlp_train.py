"""A multi-layer perceptron with Adam by hand, one jitted step."""

import jax
import jax.numpy as jnp

WIDTH, LAYERS, BATCH = 4096, 8, 4096


def init(key):
    keys = jax.random.split(key, LAYERS)
    return [{"w": jax.random.normal(k, (WIDTH, WIDTH)) * 0.01, "b": jnp.zeros(WIDTH)} for k in keys]


def loss_of(params, x, y):
    for layer in params:
        x = jax.nn.gelu(x @ layer["w"] + layer["b"])
    return jnp.mean((x - y) ** 2)


@jax.jit
def step(params, m, v, x, y):
    loss, grads = jax.value_and_grad(loss_of)(params, x, y)
    m = jax.tree.map(lambda a, g: 0.9 * a + 0.1 * g, m, grads)
    v = jax.tree.map(lambda a, g: 0.99 * a + 0.01 * g * g, v, grads)
    params = jax.tree.map(lambda p, a, b: p - 1e-3 * a / (jnp.sqrt(b) + 1e-8), params, m, v)
    return params, m, v, loss


params = init(jax.random.key(0))
m = jax.tree.map(jnp.zeros_like, params)
v = jax.tree.map(jnp.zeros_like, params)
key = jax.random.key(1)
for number in range(5):
    key, a, b = jax.random.split(key, 3)
    x, y = jax.random.normal(a, (BATCH, WIDTH)), jax.random.normal(b, (BATCH, WIDTH))
    params, m, v, loss = step(params, m, v, x, y)
print("loss", float(loss))
