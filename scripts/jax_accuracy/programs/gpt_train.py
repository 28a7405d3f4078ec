"""A small GPT written with functions, trained by SGD; layers stacked and scanned, each checkpointed."""

import jax
import jax.numpy as jnp

D, HEADS, LAYERS, VOCAB, LENGTH, BATCH = 1024, 16, 12, 32000, 512, 8


def norm(x):
    return (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)


def block(x, p):
    h = norm(x)
    q, k, v = jnp.split(h @ p["qkv"], 3, axis=-1)
    shape = (x.shape[0], x.shape[1], HEADS, D // HEADS)
    q, k, v = (t.reshape(shape).transpose(0, 2, 1, 3) for t in (q, k, v))
    scores = q @ k.transpose(0, 1, 3, 2) / (D // HEADS) ** 0.5
    mask = jnp.tril(jnp.ones((x.shape[1], x.shape[1]), bool))
    weights = jax.nn.softmax(jnp.where(mask, scores, -1e9), axis=-1)
    x = x + (weights @ v).transpose(0, 2, 1, 3).reshape(x.shape) @ p["out"]
    return x + jax.nn.gelu(norm(x) @ p["up"]) @ p["down"]


def loss_fn(params, tokens):
    x = params["embed"][tokens[:, :-1]]
    x, _ = jax.lax.scan(lambda x, p: (jax.checkpoint(block)(x, p), None), x, params["blocks"])
    logits = norm(x) @ params["embed"].T
    picked = jnp.take_along_axis(jax.nn.log_softmax(logits), tokens[:, 1:, None], axis=-1)
    return -picked.mean()


@jax.jit
def train_step(params, tokens):
    loss, grads = jax.value_and_grad(loss_fn)(params, tokens)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), loss


def main():
    keys = iter(jax.random.split(jax.random.key(0), 16))

    def make(*shape):
        return jax.random.normal(next(keys), shape) * 0.02

    params = {
        "embed": make(VOCAB, D),
        "blocks": {
            "qkv": make(LAYERS, D, 3 * D),
            "out": make(LAYERS, D, D),
            "up": make(LAYERS, D, 4 * D),
            "down": make(LAYERS, 4 * D, D),
        },
    }
    for number in range(4):
        tokens = jax.random.randint(jax.random.key(number), (BATCH, LENGTH + 1), 0, VOCAB)
        params, loss = train_step(params, tokens)
        print(number, float(loss))


if __name__ == "__main__":
    main()
