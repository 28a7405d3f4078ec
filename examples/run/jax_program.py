"""A healthy JAX program: a few steps of gradient descent on a small network."""
import jax
import jax.numpy as jnp


def predict(weights, x):
    for w in weights[:-1]:
        x = jax.nn.relu(x @ w)
    return x @ weights[-1]


@jax.jit
def step(weights, x, y):
    loss, gradients = jax.value_and_grad(lambda w: jnp.mean((predict(w, x) - y) ** 2))(weights)
    return [w - 0.01 * g for w, g in zip(weights, gradients)], loss


keys = jax.random.split(jax.random.PRNGKey(0), 6)
weights = [jax.random.normal(key, (512, 512)) / 23 for key in keys[:4]]
x, y = jax.random.normal(keys[4], (256, 512)), jax.random.normal(keys[5], (256, 512))
for _ in range(20):
    weights, loss = step(weights, x, y)
print("loss", float(loss))
