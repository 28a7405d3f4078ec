"""Half precision (mixed_float16) with a loss that is scaled, EfficientNetV2-B0, images of changing sizes in a pipeline."""

import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_float16")
batch = 32
images = tf.data.Dataset.range(4000).map(lambda n: (tf.zeros([192, 192, 3]), n % 10)).batch(batch)
model = keras.applications.EfficientNetV2B0(weights=None, input_shape=(192, 192, 3), classes=10)
model.compile("adam", "sparse_categorical_crossentropy")
model.fit(images, epochs=1)
