"""Remedies of TensorFlow programs: edits of the program's source, which a dry run runs."""

import pytest
from dry import H200, T4, dry_run, interpreter_with

pytestmark = [
    pytest.mark.skipif(interpreter_with("tensorflow") is None, reason="TensorFlow is not installed (FAULTLINE_TENSORFLOW_PYTHON names an interpreter that has it)"),
    pytest.mark.xdist_group("tensorflow"),
]  # fmt: skip

TRAIN = """
import numpy as np
import tensorflow as tf
batch_size = 64
layers = [tf.keras.layers.Dense(512, activation="relu") for _ in range(6)]
model = tf.keras.Sequential([tf.keras.Input([512]), *layers, tf.keras.layers.Dense(1)])
model.compile("adam", "mse")
model.fit(np.zeros([256, 512], "float32"), np.zeros([256, 1], "float32"), batch_size=batch_size, epochs=1, verbose=0)
"""


def offers(ran) -> dict:
    assert ran.status == 0, ran.err
    return {offer["name"]: offer for offer in ran.summary["offers"]}


@pytest.mark.parametrize("gpu, half", [(T4, "float16"), (H200, "bfloat16")], ids=["T4", "H200"])
def test_mixed_precision_is_a_line_behind_the_imports(binary, tmp_path, tmp_path_factory, gpu, half):
    ran = dry_run(binary, tmp_path, TRAIN.replace("[256, ", "[8192, ").replace("= 64", "= 8192"), framework="tensorflow", gpu=gpu)  # fmt: skip
    offer = offers(ran)["mixed_precision"]
    (edit,) = offer["edits"]
    assert (edit["line"], edit["old"]) == (4, [])
    assert edit["new"] == [f'tf.keras.mixed_precision.set_global_policy("mixed_{half}")']
    again = dry_run(
        binary,
        tmp_path_factory.mktemp("again"),
        tmp_path / "program.py",
        framework="tensorflow",
        gpu=gpu,
        cold=True,
        edits={"mixed_precision": offer["edits"]},
        changes={"mixed_precision": half},
    )
    assert again.status == 0, again.err
    assert again.summary["edited"]["remedies"] == ["mixed_precision"] and again.summary["offers"] == []
    assert again.summary["peak_allocated"] < 0.9 * ran.summary["peak_allocated"]


HAS_NONE = {
    "it has it": TRAIN.replace("batch_size = 64", "tf.keras.mixed_precision.set_global_policy('mixed_float16')"),
    "no Keras": "import tensorflow as tf\nx = tf.ones([1024, 1024])\ny = x @ x\n",
}


@pytest.mark.parametrize("program", HAS_NONE.values(), ids=HAS_NONE)
def test_where_it_changes_nothing_it_is_not_offered(binary, tmp_path, program):
    program = program.replace("batch_size=batch_size", "batch_size=64")
    assert "mixed_precision" not in offers(dry_run(binary, tmp_path, program, framework="tensorflow"))


@pytest.mark.parametrize(
    "imports, name",
    [
        ("import tensorflow as tf", "tf.keras"),
        ("import tensorflow", "tensorflow.keras"),
        ("import keras\nimport tensorflow as tf", "keras"),
        ("from tensorflow import keras", "keras"),
        ("import tensorflow.keras as k", "k"),
        ("import tensorflow.keras", "tensorflow.keras"),
        ("import numpy as np", ""),
    ],
)
def test_keras_is_named_as_the_program_names_it(imports, name):
    import ast

    from faultline.plan.tensorflow.remedies import _name_of_keras

    assert _name_of_keras(ast.parse(imports + "\nx = 1\n"))[0] == name
