"""A convolutional network in bfloat16 on images, plain gradient descent."""

import jax
import jax.numpy as jnp
import numpy as np

CHANNELS = [3, 64, 128, 256, 512]


def conv(x, w, stride=1):
    return jax.lax.conv_general_dilated(
        x, w, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def model(params, x):
    for w1, w2 in params["convs"]:
        x = jax.nn.relu(conv(x, w1, 2))
        x = jax.nn.relu(conv(x, w2) + x)
    return x.mean((1, 2)) @ params["head"]


def loss_fn(params, images, labels):
    logits = model(params, images.astype(jnp.bfloat16)).astype(jnp.float32)
    return -jnp.mean(jnp.sum(jax.nn.one_hot(labels, 1000) * jax.nn.log_softmax(logits), -1))


grad = jax.jit(jax.value_and_grad(loss_fn))
rng = np.random.default_rng(0)
params = {
    "convs": [
        tuple(jnp.asarray(rng.normal(size=(3, 3, i, o)) * 0.05, jnp.bfloat16) for i, o in ((a, b), (b, b)))
        for a, b in zip(CHANNELS, CHANNELS[1:])
    ],
    "head": jnp.asarray(rng.normal(size=(512, 1000)) * 0.05, jnp.bfloat16),
}
for epoch in range(3):
    images = jnp.asarray(rng.normal(size=(64, 224, 224, 3)).astype(np.float32))
    labels = jnp.asarray(rng.integers(0, 1000, 64))
    loss, grads = grad(params, images, labels)
    params = jax.tree.map(lambda p, g: p - 0.01 * g, params, grads)
    print(epoch, loss)
