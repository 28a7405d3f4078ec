"""Dry runs of TensorFlow programs: eager operations, variables, traced functions and sessions. One interpreter with TensorFlow, forked for each case."""

import pytest
from dry import H200, T4, dry_run, interpreter_with

pytestmark = [
    pytest.mark.skipif(interpreter_with("tensorflow") is None, reason="TensorFlow is not installed (FAULTLINE_TENSORFLOW_PYTHON names an interpreter that has it)"),
    pytest.mark.xdist_group("tensorflow"),
]  # fmt: skip
MIB = 1 << 20
HEAD = "import tensorflow as tf\nimport numpy as np\ninfo = lambda: tf.config.experimental.get_memory_info('GPU:0')\nused = lambda: info()['current']\n"
ONE = HEAD.replace("import tensorflow as tf", "import tensorflow.compat.v1 as tf\ntf.disable_eager_execution()")


@pytest.fixture
def plan(binary, tmp_path):
    def run(program, head=HEAD, **options):
        return dry_run(binary, tmp_path, head + program, framework="tensorflow", **options)

    return run


HELD = {
    "tensors are held while they live": ("a = tf.ones([1024, 1024])\nprint(used() >> 20)\ndel a\nprint(used() >> 20)", "4 0"),
    "of half the type, half": ("a = tf.ones([1024, 1024], tf.bfloat16)\nprint(used() >> 20)", "2"),
    "a result beside its operands": ("a = tf.ones([1024, 1024])\nb = a + a\nprint(used() >> 20)", "8"),
    "a large product is not computed": ("a = tf.ones([4096, 4096])\nb = a @ a\nprint(used() >> 20, float(b[0, 0]))", "128 0.0"),
    "small ones are": ("a = tf.constant([[1.0, 2.0], [3.0, 4.0]])\nprint(float(tf.reduce_sum(a @ a)), int(tf.argmax(a[0])))", "54.0 1"),
    "reshaped it is the same": ("a = tf.ones([1 << 20])\nb = tf.reshape(a, [1024, 1024])\ndel a\nprint(used() >> 20)\ndel b\nprint(used() >> 20)", "4 0"),
    "a variable has its tensor": ("v = tf.Variable(tf.ones([1024, 1024]))\nprint(used() >> 20)\nv.assign(tf.zeros([1024, 1024]))\nprint(used() >> 20)\ndel v\nprint(used() >> 20)", "4 4 0"),
    "from the host": ("a = tf.constant(np.ones((1024, 1024), np.float32))\nprint(used() >> 20)", "4"),
    "on the CPU by name it is not on the GPU": ("with tf.device('/CPU:0'):\n    a = tf.ones([1024, 1024]) + 1\nprint(used() >> 20)", "0"),
    "gradients": ("v = tf.Variable(tf.ones([1024, 1024]))\nwith tf.GradientTape() as tape:\n    y = tf.reduce_sum(v * v)\ng = tape.gradient(y, v)\ndel tape, y\nprint(used() >> 20)", "8"),
    "gradients of what is not computed": ("v = tf.Variable(tf.ones([2048, 2048]))\nwith tf.GradientTape() as tape:\n    y = tf.reduce_sum(v @ v)\ng = tape.gradient(y, v)\nprint(g.shape)", "(2048, 2048)"),
    "a traced function gives back what it used": (
        "f = tf.function(lambda x: tf.reduce_sum(tf.tanh(x @ x) @ x))\na = tf.ones([2048, 2048])\ny = f(a)\nprint(used() >> 20, info()['peak'] >> 20)",
        "16 48",
    ),
    "each traced function assigns to its own variable": (
        "def made():\n    v = tf.Variable(tf.ones([1024, 1024]))\n    return v, tf.function(lambda x: v.assign(x + 1.0))\n"
        "a = tf.zeros([1024, 1024])\npairs = [made() for _ in range(3)]\nbefore = used()\n"
        "for _ in range(2):\n    for v, f in pairs: f(a)\nprint(before >> 20, used() >> 20)\ndel v, f, pairs\nimport gc; gc.collect()\nprint(used() >> 20)",
        "16 16 4",
    ),
    "on the GPU by name": ("with tf.device('/GPU:0'):\n    a = tf.constant([[1.0] * 1024] * 1024)\n    b = a + a\nprint(used() >> 20, float(b[0, 0]))", "8 2.0"),
    "hidden it is not there": ("tf.config.set_visible_devices([], 'GPU')\na = tf.ones([1024, 1024])\nprint(len(tf.config.list_logical_devices('GPU')), used() >> 20)", "0 0"),
    "int32 is the host's": ("a = tf.zeros([1024, 1024], tf.int32)\nprint(used() >> 20)", "0"),
    "what the GPU's kernels make of int32 is the GPU's": (
        "x = tf.zeros([1024, 1024])\na = tf.cast(x, tf.int32)\nv, i = tf.math.top_k(x, 1024)\nr = tf.random.uniform([1024, 1024], 0, 9, tf.int32)\n"
        "g = tf.gather(r, tf.range(1024))\nprint(used() >> 20)\nh = tf.reshape(a, [-1]) + 1\nprint(used() >> 20)\nh = tf.reshape(a, [-1])\ndel a\nprint(used() >> 20)",
        "24 24 20",
    ),
    "samples of classes are drawn in scratch memory": ("l = tf.zeros([64, 16384])\ns = tf.random.categorical(l, 64)\nprint(used() >> 20, info()['peak'] >> 20)", "4 516"),
    "also in a traced function": ("l = tf.zeros([64, 16384])\nf = tf.function(lambda l: tf.random.categorical(l, 64))\ns = f(l)\nprint(used() >> 20, info()['peak'] >> 20)", "4 516"),
    "large ones of int32": ("x = tf.zeros([4096, 4096])\na = tf.cast(x, tf.int32)\nb = tf.cast(a, tf.float32)\nprint(used() >> 20)", "192"),
    "int32 of a traced function's kernels": (
        "f = tf.function(lambda x: tf.reduce_sum(tf.cast(tf.cast(x, tf.int32), tf.float32) * x))\ng = tf.function(lambda x: tf.cast(x, tf.int32))\n"
        "a = tf.ones([4096, 4096])\ny = f(a)\nprint(info()['peak'] >> 20)\nz = g(a)\nprint(used() >> 20)",
        "192 64",
    ),
    "the GPU is there": ("print(len(tf.config.list_physical_devices('GPU')), len(tf.config.list_physical_devices('CPU')))", "1 1"),
}  # fmt: skip


@pytest.mark.parametrize("case", HELD)
def test_what_is_on_the_gpu(plan, case):
    program, expected = HELD[case]
    ran = plan(program)
    assert ran.status == 0, ran.err
    assert " ".join(ran.out.split()) == expected


@pytest.mark.parametrize(
    "program",
    ["x = tf.ones([1 << 20, 1 << 20])\n", "x = tf.random.normal([10000, 10000, 100])\n", "k = [tf.zeros([1 << 28]) for _ in range(20)]\n", "a = tf.ones([1 << 16, 1])\nb = a * tf.transpose(a)\n"],
    ids=["4 TiB", "37 GiB", "a list", "an outer product"],
)  # fmt: skip
def test_what_does_not_fit_fails_as_tensorflow_fails_and_costs_nothing(plan, program):
    ran = plan(program)
    assert ran.status == 1 and ran.summary["died_of_memory"] and ran.summary["ooms"] == 1
    assert (
        ran.summary["exception"]["type"] == "ResourceExhaustedError"
        and "OOM when allocating tensor with shape[" in ran.err
    )
    assert any(f["rule"] == "memory/out-of-memory" for f in ran.report()["findings"])


def test_the_programs_own_except_works_and_it_goes_on(plan):
    ran = plan(
        "try:\n    x = tf.ones([1 << 20, 1 << 20])\nexcept tf.errors.ResourceExhaustedError:\n    print('caught')\ny = tf.ones([1 << 20])\nprint(used() >> 20)\n"
    )
    assert ran.out.split() == ["caught", "4"] and not ran.summary["died_of_memory"]


SESSIONS = {
    "fits": ("x = tf.placeholder(tf.float32, [None, 1000])\ny = tf.reduce_sum(x @ tf.ones([1000, 1000]))\nwith tf.Session() as s:\n    print(s.run(y, {x: np.ones((2, 1000))}))\n", None),
    "does not fit": ("y = tf.reduce_sum(tf.ones([100000, 1000]) @ tf.ones([1000, 100000]))\nwith tf.Session() as s:\n    s.run(y)\n", "ResourceExhaustedError"),
    "by what is fed": ("x = tf.placeholder(tf.float32, [None, 10])\ny = tf.reduce_sum(x @ tf.transpose(x))\nwith tf.Session() as s:\n    s.run(y, {x: np.ones((100000, 10), np.float32)})\n", "ResourceExhaustedError"),
    "trains with variables": (
        "tf.disable_v2_behavior()\nx = tf.placeholder(tf.float32, [None, 100])\nw = tf.get_variable('w', [100, 2000])\nloss = tf.reduce_mean(tf.matmul(x, w) ** 2)\n"
        "train = tf.train.AdamOptimizer(1e-3).minimize(loss)\nwith tf.Session() as s:\n    s.run(tf.global_variables_initializer())\n    for _ in range(3):\n        s.run(train, {x: np.zeros((4, 100))})\nprint(2000000.0)\n",
        None,
    ),
    "its own error": ("x = tf.placeholder(tf.float32, [2])\nwith tf.Session() as s:\n    s.run(x)\n", "InvalidArgumentError"),
}  # fmt: skip


@pytest.mark.parametrize("case", SESSIONS)
def test_sessions(plan, case):
    program, error = SESSIONS[case]
    ran = plan(program, head=ONE)
    assert (ran.summary["exception"] or {}).get("type") == error, ran.err
    assert ran.summary["died_of_memory"] == (error == "ResourceExhaustedError")
    if error is None:
        assert float(ran.out) == 2000000.0


BIG = 1 << 28  # elements of which none is computed: 1 GiB
NOT_COMPUTED = {
    "a function that makes its variable": (HEAD, f"""
class M(tf.Module):
    v = None
    @tf.function
    def __call__(self, x):
        if self.v is None:
            self.v = tf.Variable(tf.zeros([{BIG}]))
        return tf.reduce_sum(self.v) + x
m = M()
m(1.0)
print(m.v[:3].numpy(), m.v.shape[0] >> 20)
""", "[0. 0. 0.] 256"),
    "slots that a function makes and another reads": (HEAD, f"""
v, made = tf.Variable(tf.ones([4])), []
@tf.function
def build():
    if not made:
        made.append(tf.Variable(tf.zeros([{BIG}])))
        made.append(tf.Variable(tf.zeros([4])))
@tf.function
def use():
    made[1].assign_add(v)
    return made[1].read_value()
build()
print(use().numpy())
""", "[1. 1. 1. 1.]"),
    "an iterator comes to its end": (HEAD, """
w = tf.Variable(tf.ones([1 << 14, 1 << 14]))
@tf.function
def step(it):
    x = next(it)
    return tf.reduce_sum(x @ w)
it, n = iter(tf.data.Dataset.from_tensors(np.ones((8, 1 << 14), np.float32)).repeat(3)), 0
try:
    while n < 9:
        step(it)
        n += 1
except tf.errors.OutOfRangeError:
    pass
print(n)
""", "3"),
    "a Keras model": (HEAD, """
m = tf.keras.Sequential([tf.keras.layers.Input((8,), dtype='int32'), tf.keras.layers.Embedding(200_000, 512), tf.keras.layers.GlobalAveragePooling1D(), tf.keras.layers.Dense(1)])
m.compile('adam', 'mse', jit_compile=False)
h = m.fit(np.zeros((16, 8), np.int32), np.ones((16, 1), np.float32), batch_size=4, epochs=2, verbose=0)
print(len(h.history['loss']), len(m.optimizer.variables), used() >> 20 > 1170, info()['peak'] >> 20)
""", "2 8 True"),
    "operations that only a GPU has": (HEAD, """
m = tf.keras.Sequential([tf.keras.layers.Input((32, 16)), tf.keras.layers.LSTM(64), tf.keras.layers.Dense(1)])
m.compile('adam', 'mse')
m.fit(np.ones((16, 32, 16), np.float32), np.ones((16, 1), np.float32), batch_size=4, verbose=0)
print(len(m.weights))
""", "5"),
    "a session's variables, one of them small": (ONE, f"""
a = tf.get_variable('a', [{BIG // 8}], initializer=tf.random_normal_initializer())
b = tf.get_variable('b', [4], initializer=tf.zeros_initializer())
c = tf.reduce_sum(a)
more = b.assign_add([1.0] * 4)
with tf.Session() as s:
    for _ in range(2):
        s.run([tf.global_variables_initializer(), tf.reduce_sum(tf.random.normal([{BIG}]))])
    print(s.run(more), s.run(b))
""", "[1. 1. 1. 1.] [1. 1. 1. 1.]"),
    "a session's older variables": (ONE, f"""
tf.disable_resource_variables()
a = tf.Variable(tf.random.normal([{BIG // 4}]), name='a')
b = tf.Variable(tf.zeros([4]), name='b')
with tf.Session() as s:
    s.run(tf.global_variables_initializer())
    print(s.run(b))
""", "[0. 0. 0. 0.]"),
}  # fmt: skip


@pytest.mark.parametrize("case", NOT_COMPUTED)
def test_what_is_not_computed_leaves_a_program_that_is_in_order_so(plan, case):
    head, program, expected = NOT_COMPUTED[case]
    ran = plan(program, head=head, gpu=H200)
    assert ran.status == 0, ran.err
    assert " ".join(ran.out.split()).startswith(expected)


UNSET = "v = tf.Variable(tf.zeros([4]))\nhandle = tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=[4], shared_name='u', container='')\n"
READ = "tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32)\n"


@pytest.mark.parametrize(
    "before, is_own",
    [
        ("", True),
        ("f = tf.function(lambda x: tf.reduce_sum(x @ x))\nf(tf.ones([2048, 2048]))\n", True),
        ("tf.raw_ops.CudnnRNNParamsSize(num_layers=1, num_units=2, input_size=2, T=tf.float32, S=tf.int32)\n", False),
        ("g = tf.function(lambda x: v.assign(tf.reduce_sum(x @ x, axis=1)[:4]))\ng(tf.ones([2048, 2048]))\n", False),
    ],
    ids=[
        "nothing left out",
        "left out, and it changes nothing",
        "only a GPU has it",
        "left out, and it would have assigned",
    ],
)
def test_a_failure_that_the_dry_run_can_have_caused_is_not_called_the_programs_own(plan, before, is_own):
    ran = plan(UNSET + before + READ)
    kinds = ("InvalidArgumentError", "NotFoundError") if "Cudnn" in before else ("FailedPreconditionError",)
    assert ran.summary["exception"]["type"] in kinds
    assert (ran.summary["stand_in"] == "") == is_own


READS = {
    "a variable of computed numbers": ("v = tf.Variable(tf.random.normal([100, 100]))\nprint(v.numpy().std() > 0.5)", False),
    "a layer's weights": ("m = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(3)])\nprint(abs(m.get_weights()[0]).sum() > 0, float(tf.reduce_sum(tf.abs(m.weights[0]))) > 0)", False),
    "assigned and added to": ("v = tf.Variable(1.0)\nv.assign_add(2.0)\nprint(float(v))", False),
    "after a function that was computed": ("v = tf.Variable(1.0)\nf = tf.function(lambda: v.assign_add(1.0))\nf()\nprint(float(v))", False),
    "a variable of numbers that are not": ("a = tf.ones([2048, 2048])\nv = tf.Variable(a @ a)\nprint(float(v[0, 0]))", True),
    "added to from such": ("a = tf.ones([2048, 2048])\nv = tf.Variable(0.0)\nv.assign_add(tf.reduce_sum(a @ a))\nprint(float(v))", True),
    "after a function that was not": ("v = tf.Variable(1.0)\nf = tf.function(lambda x: v.assign(tf.reduce_sum(x @ x)))\nf(tf.ones([2048, 2048]))\nprint(float(v))", True),
    "written over with a number": ("a = tf.ones([2048, 2048])\nv = tf.Variable(tf.reduce_sum(a @ a))\nv.assign(3.0)\nprint(float(v))", False),
}  # fmt: skip


@pytest.mark.parametrize("case", READS)
def test_a_read_is_noted_where_the_number_was_not_computed_and_only_there(plan, case):
    program, noted = READS[case]
    ran = plan(program)
    assert ran.status == 0, ran.err
    assert any("does not compute" in note["text"] for note in ran.notes()) == noted


LIMITS = {
    "as it is": ("", {}, 13757),
    "growing": ("tf.config.experimental.set_memory_growth(tf.config.list_physical_devices('GPU')[0], True)\n", {}, 13757),
    "its own": ("g = tf.config.list_physical_devices('GPU')[0]\ntf.config.set_logical_device_configuration(g, [tf.config.LogicalDeviceConfiguration(memory_limit=2048)])\n", {}, 2048),
    "another reserve": ("", {"TF_DEVICE_MIN_SYS_MEMORY_IN_MB": "50"}, 14757),
}  # fmt: skip


@pytest.mark.parametrize("case", LIMITS)
def test_the_pools_limit(plan, case):
    setting, variables, mebibytes = LIMITS[case]
    card = {**T4, "capacity_bytes": 14913 * MIB}
    served = plan(setting + f"x = tf.zeros([{(mebibytes - 16) * MIB}], tf.uint8)\n", gpu=card, variables=variables)
    assert served.status == 0, served.err
    assert served.summary["peak_reserved"] <= mebibytes * MIB


def test_a_pool_that_grows_takes_less(plan):
    ran = plan(LIMITS["growing"][0] + "x = tf.zeros([1 << 20])\n")
    assert ran.summary["peak_reserved"] < 64 * MIB


@pytest.mark.parametrize(
    "program, rule",
    [
        ("x = tf.zeros([10, 10])\ntry:\n    x[10, 10]\nexcept tf.errors.InvalidArgumentError:\n    pass\n", "tensor/index-out-of-range"),
        ("x = tf.zeros([10])\ntry:\n    tf.gather(x, [3, 12])\nexcept tf.errors.InvalidArgumentError:\n    pass\n", "tensor/index-out-of-range"),
        ("x = tf.zeros([10, 10])\nprint(x[9, 9], tf.gather(x, [3, 9]).shape)\n", None),
    ],
    ids=["slice", "gather", "clean"],
)  # fmt: skip
def test_an_index_that_is_refused_is_told(plan, program, rule):
    ran = plan(program)
    found = ran.report()["findings"]
    assert [f["rule"] for f in found] == ([rule] if rule else [])
    assert not found or found[0]["location"]["line"] == 7


WHILE_TRACED = {
    "a product of a traced function": ("@tf.function\ndef f(a, b):\n    return tf.matmul(a, b)\ndef main():\n    f(tf.ones([3, 4]), tf.ones([5, 6]))\nmain()\n", "tensor/shape-mismatch", 7, "MatMul"),
    "a sum in a function that it calls": ("def inner(a):\n    return a + tf.ones([7])\n@tf.function\ndef f(a):\n    return inner(a) * 2\nf(tf.ones([3]))\n", "tensor/shape-mismatch", 6, "AddV2"),
    "an exception of the program's own": ("@tf.function\ndef f(a):\n    if a.shape[0] != 4:\n        raise ValueError('four, please')\n    return a\nf(tf.ones([3]))\n", None, 8, ""),
}  # fmt: skip


@pytest.mark.parametrize("case", WHILE_TRACED)
def test_what_fails_while_a_function_is_traced_has_the_programs_line(plan, case):
    program, rule, line, operation = WHILE_TRACED[case]
    ran = plan(program)
    assert ran.status != 0
    assert ran.summary["exception"]["line"] == line, ran.err
    found = ran.report()["findings"]
    assert [f["rule"] for f in found] == ([rule] if rule else [])
    assert not found or (found[0]["location"]["line"], found[0]["location"]["op"]) == (line, operation)


def test_a_chained_traceback_has_no_frames_of_faultlines(plan):
    ran = plan(
        "try:\n    tf.reshape(tf.ones([3]), [2])\nexcept Exception as e:\n    raise RuntimeError('mine') from e\n"
    )
    assert "RuntimeError: mine" in ran.err and "direct cause" in ran.err
    assert "faultline/plan" not in ran.err


RESIDENT = "from faultline.plan.tensorflow import eager\neager._MOST_BYTES = 64 << 20\nresident = lambda: int(open('/proc/self/statm').read().split()[1]) * 4096 >> 20\nbefore = resident()\n"


# As much as the GPU has room for need not have room here.
@pytest.mark.parametrize(
    "program, kept, computed",
    [
        ("kept = [tf.ones([1 << 20]) * (i + 1.0) for i in range(100)]\nfirst, last = kept[0], kept[-1]\n", 400, (1, 0)),
        ("big = tf.ones([2048, 2048]) @ tf.ones([2048, 2048])\nkept = [big[i] + tf.ones([512, 2048]) for i in range(100)]\nfirst = last = kept[0][0]\n", 416, (0, 0)),
        ("for i in range(100):\n    last = tf.ones([1 << 20]) * (i + 1.0)\n    first = last\n", 4, (100, 100)),
    ],
    ids=["numbers", "numbers of what is not computed", "one after the other"],
)  # fmt: skip
def test_tensors_that_a_program_keeps_do_not_fill_this_machine(plan, program, kept, computed):
    ran = plan(RESIDENT + program + "print(used() >> 20, resident() - before, int(first[0]), int(last[0]))\n")
    used, resident, *numbers = map(int, ran.out.split())
    assert kept <= used <= kept + 16 and resident < 160, ran.err
    assert tuple(numbers) == computed


PARTS = """
x, t = tf.random.normal([2048, 2048]) @ tf.ones([2048, 2048]), tf.zeros([10, 4])
def rows(i):
    return tf.gather(t, i) + 1.0
def loss(i):
    return tf.nn.sparse_softmax_cross_entropy_with_logits(i, t[:2]) + 1.0
@tf.function
def in_function(i): return rows(i)
@tf.function
def in_two(i): return in_function(i)
"""
# Beside each case the line of what refuses, which is the operation's and not the call's. What is refused because of a number that was not computed is nobody's mistake.
REFUSED = {
    "an index": ("in_function(tf.constant([1, 12]))", 8),
    "an index, two functions deep": ("in_two(tf.constant([1, 12]))", 8),
    "an index, a function without a name": ("tf.function(lambda i: rows(i))(tf.constant([1, 12]))", 8),
    "a label": ("tf.function(loss)(tf.constant([1, 4]))", 10),
    "in order": ("in_two(tf.constant([1, 9])), tf.function(loss)(tf.constant([1, 3]))", None),
    "not computed": ("in_two(tf.cast(x[0, :2], tf.int32) - 1)", None),
    "not computed, without a function": ("rows(tf.cast(x[0, :2], tf.int32) - 1)", None),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_function_refuses_is_told_with_its_own_line(plan, case):
    program, line = REFUSED[case]
    ran = plan(PARTS + program)
    assert (ran.status == 0) == (line is None), ran.err
    found = [f for f in ran.report()["findings"] if f["severity"] == "error"]
    assert [(f["rule"], f["location"]["line"]) for f in found] == (
        [("tensor/index-out-of-range", line)] if line else []
    )


def test_a_list_that_grows_is_a_leak_and_a_loop_that_rebinds_is_none(plan, binary, tmp_path):
    ran = plan("kept = []\nfor _ in range(50):\n    kept.append(tf.ones([1000, 1000]))\n")
    leak = next(f for f in ran.report()["findings"] if f["rule"] == "memory/leak")
    assert leak["location"]["line"] == 7


def test_a_loop_that_rebinds_is_no_leak(plan):
    ran = plan("for _ in range(50):\n    x = tf.ones([1000, 1000])\n    y = x * 2.0\n")
    assert not any(f["rule"] == "memory/leak" for f in ran.report()["findings"])


# A function's constant lies on the GPU as long as the function lives. What a call is given again and again is let go again and again.
CONSTANTS = {
    "functions that live": ("kept = []\nfor _ in range(40):\n    f = tf.function(lambda x: tf.reduce_sum(x * big))\n    kept.append(f)\n    f(one); f(one)\n", 160, True),
    "traced anew for each number": ("f = tf.function(lambda x, n: tf.reduce_sum(x * big) * n)\nfor n in range(40): f(one, n)\n", 160, True),
    "one that is called again": ("f = tf.function(lambda x: tf.reduce_sum(x * big))\nfor _ in range(40): f(one)\n", 4, False),
    "functions that go": ("import gc\nfor _ in range(40):\n    f = tf.function(lambda x: tf.reduce_sum(x * big))\n    f(one)\n    del f\n    gc.collect()\n", 0, False),
    "small ones given to functions inside": ("c = tf.constant([1.0, 2.0, 3.0])\nf = tf.function(lambda x: x - c)\ng = tf.function(lambda x: tf.reduce_sum(f(x)))\nfor _ in range(40): g(tf.ones([100, 3]))\n", 0, False),
}  # fmt: skip


@pytest.mark.parametrize("case", CONSTANTS)
def test_constants_of_functions_live_with_their_functions(plan, case):
    program, mebibytes, is_leak = CONSTANTS[case]
    ran = plan(
        "big, one = np.random.default_rng(0).random((1024, 1024), np.float32), tf.ones([1024])\n"
        + program
        + "print(round(used() / 2**20, 1))\n"
    )
    assert mebibytes <= float(ran.out) <= mebibytes + 0.1, ran.err
    report = ran.report()
    assert bool([f for f in report["findings"] if f["rule"] == "memory/leak"]) == is_leak
    assert ran.summary["allocations"] < 2000


TRACED = """
import time
w = tf.ones([1024, 1024])
@tf.function
def f(x):
    for _ in range(TIMES):
        time.sleep(0.5)
        with tf.init_scope(): tf.zeros([8])
    return tf.reduce_sum(tf.tanh(x @ w))
for _ in range(1000000): f(tf.ones([65536, 1024]))
"""


@pytest.mark.parametrize("times, late, is_planned", [(4, 30, True), (4, 0, False)])
def test_what_is_being_traced_when_the_time_is_over_runs_once_or_has_no_verdict(plan, times, late, is_planned):
    patience = (
        f"from faultline.plan.tensorflow import tensorflow_session\ntensorflow_session._MOST_LATE_SECONDS = {late}\n"
    )
    ran = plan(patience + TRACED.replace("TIMES", str(times)), seconds=1)
    assert ran.summary["stopped"] == "after 1 seconds", ran.err
    assert (ran.summary["unplanned"] is None) == is_planned
    assert (ran.summary["peak_allocated"] >> 20 >= 512) == is_planned


TRIALS = """
x, kept = np.ones((8, 16), np.float32), []
def made():
    m = tf.keras.Sequential([tf.keras.layers.Input((16,)), tf.keras.layers.Dense(20000), tf.keras.layers.Dense(1)])
    m.compile("adam", "mse")
    return m
m = made()
for trial in range(9):
    m.fit(x, x[:, :1], batch_size=4, verbose=0)
"""
NEXT = "    kept.append(m)\n    m = made()\n"


# Letting go of the models is no clean twin: TensorFlow 2.21 itself keeps their variables in the functions that fit() traced.
@pytest.mark.parametrize("more", [NEXT, ""], ids=["another model each time", "one model"])
def test_models_that_are_kept_trial_after_trial_are_a_leak(plan, more):
    ran = plan(TRIALS + more)
    assert ran.status == 0, ran.err
    leaks = [f for f in ran.report()["findings"] if f["rule"] == "memory/leak"]
    assert bool(leaks) == bool(more)
    words = "9 models were trained one after the other at one line, in 18 steps"
    assert any(words in note["text"] for note in ran.notes()) == bool(more)


def test_what_a_graph_makes_is_named_by_its_layer(plan):
    ran = plan(
        "m = tf.keras.Sequential([tf.keras.layers.Input((16,)), tf.keras.layers.Dense(20000, name='wide')])\nf = tf.function(m)\ny = f(tf.ones([64, 16]))\n"
    )
    assert b"wide" in ran.traces[0].read_bytes()


def test_what_goes_wrong_inside_is_no_error_of_the_programs_and_no_verdict(plan):
    broken = "from faultline.plan.tensorflow import walk\nwalk.Walk.run = lambda *_: 1 / 0\n"
    ran = plan(broken + "f = tf.function(lambda x: x + 1)\nprint(float(f(tf.constant(1.0))))\n")
    assert ran.out.split() == ["2.0"] and "ZeroDivisionError" in ran.summary["unplanned"]["text"]


def test_what_a_graph_takes_is_said_to_be_an_estimate(plan):
    ran = plan("f = tf.function(lambda x: x @ x)\ny = f(tf.ones([64, 64]))\n")
    assert any(note.get("verdict") == "with graphs counted operation by operation" for note in ran.notes())
    assert float(ran.summary["operations"]) > 0


@pytest.mark.parametrize(
    "order, expected",
    [("hide tf jax", None), ("tf jax", "JAX on the GPU beside TensorFlow"), ("jax tf", "without what TensorFlow takes"), ("hide jax tf", None)],
)  # fmt: skip
def test_of_two_frameworks_one_is_planned_and_the_other_is_named(plan, order, expected):
    lines = {
        "hide": "tf.config.set_visible_devices([], 'GPU')",
        "tf": "x = tf.ones([64, 64]) + 1.0",
        "jax": "w = jnp.ones((1024, 1024))",
    }
    ran = plan(
        "try:\n    import jax.numpy as jnp\nexcept ImportError:\n    raise SystemExit(77)\n"
        + "\n".join(lines[word] for word in order.split())
    )
    if ran.status == 77:
        pytest.skip("JAX is not installed beside TensorFlow")
    told = [(ran.summary["unplanned"] or {}).get("text", ""), *(note.get("verdict", "") for note in ran.notes())]
    assert ran.summary["peak_allocated"] >= 4 * MIB
    assert any(expected in text for text in told) if expected else not any("TensorFlow" in text for text in told)


BROKEN = "from faultline.plan.tensorflow import eager\ndef broken(*_): return {}['nothing']\nif OURS: eager.Eager.take_all = broken\nx = tf.ones([4])\n{}['of the program']\n"


@pytest.mark.parametrize("ours", [True, False])
def test_a_mistake_of_the_dry_run_is_not_called_the_programs(plan, ours):
    program = BROKEN.replace("OURS", str(ours))
    if ours:
        program = program.replace(
            "def broken(*_): return {}['nothing']",
            "exec(compile(\"def broken(*_): return {}['nothing']\", eager.__file__, 'exec'))",
        )
    ran = plan(program)
    assert ran.status == 1 and (ran.summary["unplanned"] is not None) == ours, ran.err
    assert not ours or "this is a failure of Faultline's dry run" in ran.summary["unplanned"]["text"]
