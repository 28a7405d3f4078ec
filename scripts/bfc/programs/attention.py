"""Two blocks of self-attention, several threads of TensorFlow's own at work."""

import tensorflow as tf

tf.random.set_seed(0)
width, heads = 128, 4


def weights(*shape):
    return tf.Variable(tf.random.normal(shape, stddev=0.05))


blocks = [
    [weights(width, 3 * width), weights(width, width), weights(width, 4 * width), weights(4 * width, width)]
    for _ in range(2)
]
variables = [variable for block in blocks for variable in block]


@tf.function(reduce_retracing=True)
def train(x):
    with tf.GradientTape() as tape:
        h = x
        for mixed, out, up, down in blocks:
            q, k, v = tf.split(tf.einsum("btc,cd->btd", h, mixed), 3, axis=-1)
            q, k, v = (tf.transpose(tf.reshape(t, [8, -1, heads, width // heads]), [0, 2, 1, 3]) for t in (q, k, v))
            seen = tf.matmul(tf.nn.softmax(tf.matmul(q, k, transpose_b=True) / 5.6), v)
            h += tf.einsum("btc,cd->btd", tf.reshape(tf.transpose(seen, [0, 2, 1, 3]), [8, -1, width]), out)
            h += tf.einsum("btc,cd->btd", tf.nn.gelu(tf.einsum("btc,cd->btd", h, up)), down)
        loss = tf.reduce_mean(tf.square(h))
    for variable, gradient in zip(variables, tape.gradient(loss, variables)):
        variable.assign_sub(0.01 * gradient)
    return loss


for length in (64, 128, 96, 160, 64, 128, 200, 32):
    loss = train(tf.random.normal([8, length, width]))
print("loss", float(loss))
