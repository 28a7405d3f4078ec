"""TensorFlow and JAX programs under `run` on a machine without a GPU: the program is as without it, and the report names cause, operation and line."""

import json
import re
import subprocess
import sys
import textwrap

import pytest

from common import ROOT

sys.path.append(str(ROOT / "tests/python/plan"))
from dry import interpreter_with  # noqa: E402

tensorflow = [
    pytest.mark.skipif(
        interpreter_with("tensorflow") is None,
        reason="TensorFlow is not installed (FAULTLINE_TENSORFLOW_PYTHON names an interpreter that has it)",
    ),
    pytest.mark.xdist_group("tensorflow"),
]
PROGRAMS = ROOT / "examples/programs"


def run(binary, where, program, framework="tensorflow", environment=None):
    path = program
    if not hasattr(program, "read_text"):
        path = where / "program.py"
        path.write_text(textwrap.dedent(program))
    import os

    done = subprocess.run(
        [binary, "run", "-o", "left", "--", interpreter_with(framework), str(path)],
        cwd=where,
        capture_output=True,
        text=True,
        env={**os.environ, **(environment or {})},
    )
    if not (where / "left/report.json").exists():  # nothing was made that could be recorded, and that is said
        assert "no GPU call can be recorded" in done.stderr
        return done, None, []
    report = json.loads((where / "left/report.json").read_text())
    found = sorted((f["rule"], f["severity"], f["location"].get("line")) for f in report["findings"])
    return done, report, found


def own_words(text):
    """Of the standard error what is not Faultline's, without what differs from run to run."""
    text = re.split(r"\n\n(?=ERROR|WARNING  |NOTE|Nothing)", text)[0]
    lines = [line for line in text.splitlines() if not line.startswith(("faultline: ", "Kept in "))]
    return [re.sub(r"^([IWE]\d{4} )\S+\s+\d+ ", r"\1", line) for line in lines]


class TestTensorFlow:
    pytestmark = tensorflow

    def test_what_is_caught_is_told_and_what_grows(self, binary, tmp_path):
        done, report, found = run(
            binary,
            tmp_path,
            """
            import tensorflow as tf
            a = tf.ones([2, 3])
            try:
                tf.matmul(a, a)
            except tf.errors.InvalidArgumentError:
                pass
            try:
                tf.gather(tf.constant([1.0, 2.0]), [5])
            except tf.errors.InvalidArgumentError:
                pass
            kept = []
            for i in range(200):
                kept.append(tf.random.normal([100, 100]))  # which makes three, and keeps one
            print(len(kept))
            """,
        )
        assert (done.returncode, done.stdout) == (0, "200\n"), done.stderr
        assert found == [("memory/leak", "warning", 14), ("tensor/index-out-of-range", "warning", 9), ("tensor/shape-mismatch", "warning", 5)]  # fmt: skip
        (shapes,) = [f for f in report["findings"] if f["rule"] == "tensor/shape-mismatch"]
        assert "MatMul refused float32[2,3] and float32[2,3]" in shapes["message"]

    def test_a_program_for_version_1_ends_as_without(self, binary, tmp_path):
        program = "import tensorflow as tf\nx = tf.placeholder(tf.float32, [10])\n"
        done, report, found = run(binary, tmp_path, program)
        plain = subprocess.run(
            [interpreter_with("tensorflow"), str(tmp_path / "program.py")], capture_output=True, text=True, cwd=tmp_path
        )
        assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout) == (1, "")
        assert own_words(done.stderr) == own_words(plain.stderr)
        assert found == [("program/other-error", "note", 2)]
        assert "tensorflow.compat.v1" in report["findings"][0]["tries"][0]["what"]

    @pytest.mark.parametrize(
        "body, call, rule, line",
        [
            ("tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=ids, logits=x))", "step(tf.zeros([2, 10]), tf.constant([1, 10]))", "tensor/index-out-of-range", 4),
            ("tf.reduce_sum(tf.gather(x, ids))", "step(tf.zeros([10, 4]), tf.constant([1, 10]))", "tensor/index-out-of-range", 4),
            ("tf.reduce_sum(tf.gather(x, ids))", "step(tf.zeros([10, 4]), tf.constant([1, 9]))", None, 0),
        ],
        ids=["a label", "an index", "clean"],
    )  # fmt: skip
    def test_what_a_traced_function_refuses_has_its_line_and_the_traceback_is_whole(
        self, binary, tmp_path, body, call, rule, line
    ):
        program = f"import tensorflow as tf\n@tf.function\ndef step(x, ids):\n    return {body}\nstep(tf.zeros([2, 10]), tf.constant([0, 1]))\n{call}\n"
        done, _, found = run(binary, tmp_path, program)
        plain = subprocess.run(
            [interpreter_with("tensorflow"), "program.py"], capture_output=True, text=True, cwd=tmp_path
        )
        assert done.returncode == plain.returncode == (1 if rule else 0)
        path = str(tmp_path / "program.py")
        assert own_words(done.stderr.replace(path, "program.py")) == own_words(plain.stderr.replace(path, "program.py"))
        assert found == ([(rule, "error", line)] if rule else [])

    def test_a_failure_is_told_once_and_names_no_gpu_where_there_is_none(self, binary, tmp_path):
        done, _, found = run(binary, tmp_path, "import tensorflow as tf\na = tf.ones([64, 32])\ntf.matmul(a, a)\n")
        assert done.returncode == 1 and found == [("tensor/shape-mismatch", "error", 3)]
        assert "on the CPU" in done.stderr and "cuda:" not in done.stderr

    def test_out_of_memory_names_operation_and_line(self, binary, tmp_path):
        done, report, found = run(
            binary,
            tmp_path,
            "import tensorflow as tf\nw = tf.ones([1000, 1000])\nx = tf.random.normal([10000, 10000, 10000])\n",
            environment={"TF_ENABLE_ONEDNN_OPTS": "0"},  # its pool waits ten seconds before it gives up
        )
        assert done.returncode == 1 and found == [("memory/out-of-memory", "error", 3)], done.stderr
        (finding,) = report["findings"]
        assert "3.64 TiB was requested by RandomStandardNormal" in finding["message"]
        assert finding["holders"][0]["location"]["line"] == 2

    @pytest.mark.parametrize("many, found", [(1000000, [("memory/out-of-memory", "error", 4)]), (10, [])])
    def test_out_of_memory_inside_a_traced_function_has_the_line_inside(self, binary, tmp_path, many, found):
        program = "import tensorflow as tf\n@tf.function\ndef step(n):\n    return tf.reduce_sum(tf.zeros(tf.stack([n, 1000, 1000])))\nstep(tf.constant(MANY))\n"
        done = run(binary, tmp_path, program.replace("MANY", str(many)), environment={"TF_ENABLE_ONEDNN_OPTS": "0"})
        assert done[2] == found, done[0].stderr

    def test_training_that_is_fine_is_clean(self, binary, tmp_path):
        done, report, found = run(
            binary,
            tmp_path,
            """
            import numpy as np, tensorflow as tf
            model = tf.keras.Sequential([tf.keras.layers.Dense(64), tf.keras.layers.Dense(2)])
            model.compile("adam", "mse")
            model.fit(np.ones((64, 32), "float32"), np.ones((64, 2), "float32"), epochs=2, verbose=0)
            v = tf.Variable(tf.ones([64, 64]))
            for _ in range(100):
                v.assign_sub(tf.ones([64, 64]) * 0.1)
            """,
        )
        assert done.returncode == 0 and found == [], done.stderr
        assert report["input"].get("unseen", []) == []

    def test_the_program_is_as_without_it(self, binary, tmp_path):
        done, report, found = run(
            binary,
            tmp_path,
            """
            import gc, pickle, sys, threading, time, weakref
            import tensorflow as tf
            from tensorflow.python.framework import errors_impl

            memory = sys.modules["faultline.run.tensorflow_memory"]
            host_pool = memory._host_pool
            memory._host_pool = lambda: (time.sleep(0.3), host_pool())[1]  # all of them are there before one has begun
            together, made = threading.Barrier(8), []
            def first():
                together.wait()
                made.append(tf.ones([64, 64]) + tf.zeros([64, 64]))
            threads = [threading.Thread(target=first) for _ in range(8)]
            for thread in threads: thread.start()
            for thread in threads: thread.join()
            print(len(made))

            x = tf.ones([64, 64])
            y = tf.identity(x) + x
            ended = weakref.ref(x)
            del x
            gc.collect()
            print(ended() is None)

            v = tf.Variable(tf.ones([64, 64]))
            before = len(weakref.finalize._registry)
            for _ in range(200): v.assign(tf.ones([64, 64]))
            print(len(weakref.finalize._registry) - before <= 1)

            try:
                tf.matmul(tf.ones([32, 16]), tf.ones([32, 16]))
            except tf.errors.InvalidArgumentError:
                pass
            problem = errors_impl.OpError(node_def=None, op=None, message="mine", error_code=3)
            again = pickle.loads(pickle.dumps(problem))
            print(problem.message, again.message, again.error_code)
            """,
        )
        assert (done.returncode, done.stdout) == (0, "8\nTrue\nTrue\nmine mine 3\n"), done.stderr
        assert found == [("tensor/shape-mismatch", "warning", 31)]
        assert "MatMul refused float32[32,16] and float32[32,16]" in report["findings"][0]["message"]
        assert report["input"].get("notes", []) == []
        (log,) = (tmp_path / "left").glob("tensors-*.txt")
        written = log.read_text()
        sums = set(
            re.findall(r'^tensor (t\d+) = float32\[64,64\] op="AddV2"$', written, re.M)
        )  # threads at once may each name it
        assert sum(name in sums for name in re.findall(r"^alloc .* tensor=(t\d+) ", written, re.M)) == 9, written

    @pytest.mark.parametrize(
        "name, expected, status",
        [
            ("10_huge_tensorflow_tensor.py", [("memory/out-of-memory", "error", 8)], 1),
            ("10_huge_tensorflow1_tensor.py", [("memory/out-of-memory", "error", 9)], 1),
            ("11_growing_tensorflow_list.py", [("memory/leak", "warning", 10), ("program/other-error", "note", 12)], 1),
            ("11_growing_tensorflow1_list.py", [], 0),
            ("12_index_beyond_tensorflow.py", [("tensor/index-out-of-range", "warning", 10)], 0),
            ("12_index_beyond_tensorflow1.py", [], 0),
        ],
    )
    def test_the_verdict_on_programs_that_people_are_told_are_at_fault(self, binary, tmp_path, name, expected, status):
        done, _, found = run(binary, tmp_path, PROGRAMS / name)
        assert (done.returncode, found) == (status, expected), done.stderr


@pytest.mark.skipif(interpreter_with("jax") is None, reason="JAX is not installed")
def test_jax_out_of_memory_on_the_cpu_names_the_line_and_what_is_alive(binary, tmp_path):
    done, report, found = run(
        binary,
        tmp_path,
        "import jax.numpy as jnp\nw = jnp.ones((1000, 1000))\nx = jnp.zeros((10000, 10000, 10000))\n",
        "jax",
        {"JAX_PLATFORMS": "cpu"},
    )
    assert done.returncode == 1 and found == [("memory/host-memory", "error", 3)], done.stderr
    assert any(h["location"]["line"] == 2 for device in report["devices"] for h in device.get("holders", []))


KEEPS = """\
import jax, jax.numpy as jnp, time
step = jax.jit(lambda w, x: w - 0.1 * jax.grad(lambda w: ((x @ w) ** 2).mean())(w))
loss = jax.jit(lambda w, x: (x @ w) ** 2)
w, history, began = jnp.ones((256, 256)), [], time.monotonic()
while time.monotonic() - began < 4 or len(history) < 150:
    x = jnp.ones((128, 256))
    w = step(w, x)
    history.append(loss(w, x))
    time.sleep(0.01)
print(w.shape, history[-1].shape)
"""


@pytest.mark.skipif(interpreter_with("jax") is None, reason="JAX is not installed")
@pytest.mark.parametrize("kept", [True, False])
def test_jax_arrays_that_are_kept_are_told_by_their_line(binary, tmp_path, kept):
    program = (
        KEEPS
        if kept
        else KEEPS.replace("history.append(loss(w, x))", "history = [loss(w, x)]").replace(" or len(history) < 150", "")
    )
    done, report, found = run(binary, tmp_path, program, "jax", {"JAX_PLATFORMS": "cpu"})
    assert done.stdout == "(256, 256) (128, 256)\n" and done.returncode == 0
    assert found == ([("memory/leak", "warning", 8)] if kept else []), done.stderr
    assert all(device["name"].startswith("host memory") for device in report["devices"])
