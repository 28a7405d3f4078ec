"""Two towers of embeddings, a loop of the program's own, batches from tf.data."""

import numpy as np
import tensorflow as tf

users, films, width, batch = 2_000_000, 500_000, 64, 8192


class Towers(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.users = tf.keras.layers.Embedding(users, width)
        self.films = tf.keras.layers.Embedding(films, width)
        self.rate = tf.keras.Sequential([tf.keras.layers.Dense(256, activation="relu"), tf.keras.layers.Dense(1)])

    def call(self, pair):
        user, film = self.users(pair["user"]), self.films(pair["film"])
        return self.rate(tf.concat([user, film], axis=1))


random = np.random.default_rng(0)
ratings = {
    "user": random.integers(0, users, 1_000_000).astype(np.int32),
    "film": random.integers(0, films, 1_000_000).astype(np.int32),
    "stars": random.random(1_000_000, dtype=np.float32),
}
dataset = tf.data.Dataset.from_tensor_slices(ratings).shuffle(100_000).batch(batch).prefetch(2)
model, optimizer = Towers(), tf.keras.optimizers.Adagrad(0.1)


@tf.function
def step(pair):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(pair)[:, 0] - pair["stars"]))
    variables = model.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
    return loss


for epoch in range(2):
    for pair in dataset:
        loss = step(pair)
    print(epoch, float(loss))
