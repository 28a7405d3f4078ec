"""An embedding table with sparse gradients: small and large tensors side by side."""

import tensorflow as tf

tf.random.set_seed(0)
table = tf.Variable(tf.random.normal([20000, 64], stddev=0.05))
head = tf.Variable(tf.random.normal([64, 5], stddev=0.05))
optimizer = tf.keras.optimizers.Adagrad(0.1)
for step in range(15):
    words = tf.random.uniform([128, 20 + step], maxval=20000, dtype=tf.int32)
    labels = tf.random.uniform([128], maxval=5, dtype=tf.int32)
    with tf.GradientTape() as tape:
        pooled = tf.reduce_mean(tf.nn.embedding_lookup(table, words), axis=1)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, tf.matmul(pooled, head)))
    optimizer.apply_gradients(zip(tape.gradient(loss, [table, head]), [table, head]))
print("loss", float(loss))
