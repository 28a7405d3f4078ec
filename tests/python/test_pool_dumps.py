"""Maps of TensorFlow's and JAX's pools in every form, prefix and state: the numbers of the map come back, and the cause is the one that the pool was made for."""

import json
import random
import subprocess
import sys

import pytest

from common import FAULTLINE, ROOT

sys.path.insert(0, str(ROOT / "scripts" / "bfc"))
import dump_forms as forms  # noqa: E402

CAUSES = {"regions": "fragmented", "slack": "fragmented", "refused": "outside-framework"}
NOISE = "Epoch 3/10: loss 0.25, batch of size 32\n"


def explain(text):
    done = subprocess.run([FAULTLINE, "explain", "--format", "json", "-"], input=text, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    return json.loads(done.stdout)


def failures(report):
    return [finding for finding in report["findings"] if finding["rule"] == "memory/out-of-memory"]


def numbers(pool):
    return {
        "rounded_request_bytes": pool.rounded,
        "pool_taken_bytes": pool.taken,
        "pool_in_use_bytes": pool.in_use,
        "pool_free_bytes": pool.free,
        "pool_largest_free_bytes": pool.largest_free,
    }


def lines_of(pool, form="2023", prefix="tensorflow", rank=0):
    return forms.dump(pool, form, prefix, rank).splitlines(keepends=True)


def elsewhere(pool, name):
    """The same pool at other addresses, as another GPU's would lie."""
    own = pool.chunks
    pool.chunks = lambda: ((at, address + (1 << 44), *rest) for at, address, *rest in own())
    pool.name = name
    return pool


@pytest.mark.parametrize("situation", forms.SITUATIONS)
@pytest.mark.parametrize("form", forms.FORMS)
def test_every_form_tells_the_same(form, situation):
    # Each form meets each prefix in one of the situations.
    prefix = forms.PREFIXES[(forms.FORMS.index(form) + forms.SITUATIONS.index(situation)) % len(forms.PREFIXES)]
    pool = forms.situation(situation)
    report = explain(NOISE * 20 + forms.dump(pool, form, prefix) + forms.failure(pool))
    (finding,) = failures(report)
    assert finding["cause"] == CAUSES.get(situation, situation)
    assert finding["location"]["line"] == 41
    for name, value in numbers(pool).items():
        is_rounded = form in ("2016", "2018") and name == "rounded_request_bytes"  # to two decimals
        near = 1 << 13 if is_rounded else 0
        assert abs(finding["evidence"][name] - value) <= near, (form, prefix, name)
    assert (finding["confidence"] == "proved") == (situation != "slack")
    # The limit that would have served it: what is taken and a region for the request, in whole MiB.
    confirmed = [attempt["what"] for attempt in finding["tries"] if attempt["confirmed"]]
    if situation == "refused":
        assert confirmed == []
    else:
        enough = -(-(pool.taken + pool.rounded) // forms.MIB)
        assert len(confirmed) == 1 and any(f"{enough + more} MiB" in confirmed[0] for more in (0, 1)), confirmed
    fragmented = [other for other in report["findings"] if other["rule"] == "memory/fragmentation"]
    assert bool(fragmented) == (situation == "fragmented")


def test_two_pools_have_a_finding_each():
    first, second = forms.situation("fragmented"), elsewhere(forms.situation("exhausted"), "GPU_1_bfc")
    found = failures(explain("".join(lines_of(first) + lines_of(second)) + forms.failure(first)))
    assert [(finding["cause"], finding["device"]) for finding in found] == [("fragmented", 0), ("exhausted", 1)]


@pytest.mark.parametrize("prefix", ["absl", "rank", "tensorflow"])
def test_mixed_maps(prefix):
    first, second = forms.situation("fragmented"), elsewhere(forms.situation("exhausted"), "GPU_1_bfc")
    a, b = lines_of(first, prefix=prefix), lines_of(second, prefix=prefix, rank=1)
    choose = random.Random(7)
    text = a.pop(0)
    while a or b:
        text += (a if a and (not b or choose.random() < 0.5) else b).pop(0)
    finding = failures(explain(text + forms.failure(first)))[0]
    if prefix == "tensorflow":  # nothing tells them apart
        assert finding["cause"] == "" if "cause" in finding else True
        assert "mixed" in finding["message"]
    else:
        assert finding["cause"] == "fragmented"
        assert finding["evidence"]["pool_in_use_bytes"] == first.in_use


@pytest.mark.parametrize("kept", [10, 25, 29, 31, 33, 36, 40])
def test_a_map_that_is_cut_claims_only_what_holds(kept):
    pool = forms.situation("fragmented")
    finding = failures(explain("".join(lines_of(pool)[:kept]) + forms.failure(pool)))[0]
    assert finding.get("cause", "") in ("", "fragmented")
    if kept < 29:  # then the bins are whole, and tell
        assert finding.get("cause", "") == ""


@pytest.mark.parametrize("missing", range(28, 34))
def test_a_line_that_is_missing_is_counted(missing):
    pool = forms.situation("fragmented")
    lines = lines_of(pool)
    assert " of size " in lines[missing]
    report = explain("".join(lines[:missing] + lines[missing + 1 :]) + forms.failure(pool))
    lost = sum(value for name, value in report["input"]["lost"].items() if "missing" in name)
    assert lost == int(lines[missing].split(" of size ")[1].split()[0])
    assert failures(report)[0].get("cause", "") in ("", "fragmented")


def test_a_log_written_twice_is_read_once():
    pool = forms.situation("fragmented")
    text = "".join(line * 2 for line in lines_of(pool)) + forms.failure(pool)
    finding = failures(explain(text))[0]
    assert finding["cause"] == "fragmented"
    assert {name: finding["evidence"][name] for name in numbers(pool)} == numbers(pool)


def test_other_lines_between():
    pool = forms.situation("exhausted")
    text = "".join(line + NOISE for line in lines_of(pool)) + forms.failure(pool)
    assert failures(explain(text))[0]["cause"] == "exhausted"


def test_a_map_without_a_message():
    pool = forms.situation("fragmented")
    finding = failures(explain("".join(lines_of(pool)[29:])))[0]
    assert "A request of unknown size failed" in finding["message"]
    assert finding["evidence"]["pool_in_use_bytes"] == pool.in_use


HARMLESS = [
    "could not open file to read NUMA node: /sys/bus/pci/devices/0000:01:00.0/numa_node\n",
    "2023-01-01 00:00:00.1: I external/xla/cuda_gpu_executor.cc:996] successful NUMA node read from SysFS had negative value (-1), but there must be at least one NUMA node\n",
    "Overriding orig_value setting because the TF_FORCE_GPU_ALLOW_GROWTH environment variable is set. Original config value was 0.\n",
    "E external/local_xla/xla/stream_executor/cuda/cuda_dnn.cc:9261] Unable to register cuDNN factory: Attempting to register factory for plugin cuDNN when one has already been registered\n",
]


@pytest.mark.parametrize("line", HARMLESS)
def test_harmless_lines_are_notes(line):
    done = subprocess.run([FAULTLINE, "explain", "--format", "json", "-"], input=line, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (finding,) = json.loads(done.stdout)["findings"]
    assert finding["severity"] == "note" and "harmless" in finding["message"]


def test_harmless_lines_do_not_hide_a_failure():
    pool = forms.situation("exhausted")
    report = explain("".join(HARMLESS) + forms.dump(pool, "2023") + forms.failure(pool) + "".join(HARMLESS))
    assert [finding["rule"] for finding in report["findings"]] == ["memory/out-of-memory"]


def test_a_copy_that_found_no_memory_is_the_same_failure():
    pool = forms.situation("fragmented")
    text = forms.dump(pool, "2023") + (
        'Traceback (most recent call last):\n  File "/home/user/project/feed.py", line 9, in <module>\n    x = tf.constant(a)\n'
        "tensorflow.python.framework.errors_impl.InternalError: Failed copying input tensor from /job:localhost/replica:0/task:0/device:CPU:0 to "
        "/job:localhost/replica:0/task:0/device:GPU:0 in order to run _EagerConst: Dst tensor is not initialized.\n"
    )
    finding = explain(text)["findings"][0]
    assert (finding["rule"], finding["severity"], finding["cause"]) == ("memory/out-of-memory", "error", "fragmented")
    assert finding["location"]["line"] == 9


@pytest.mark.parametrize("place", ["train.py:1488", "/home/u/my model/net.py:7"])
def test_the_line_behind_a_node(place):
    text = (
        "tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor with shape[8,8] and type float on "
        f"/job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc\n\t [[node conv2/Conv2D (defined at {place}) ]]\n"
    )
    location = failures(explain(text))[0]["location"]
    assert f"{location['file']}:{location['line']}" == place


def test_xla_names_the_pool_and_the_device():
    text = "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 6.00MiB with allocator GPU_3_bfc on device 3.\n"
    finding = failures(explain(text))[0]
    assert finding["device"] == 3
    assert abs(finding["evidence"]["requested_bytes"] - (6 << 20)) < 16384


def async_lines(thread, sizes, free, reserved, used):
    """What the stream-ordered allocator prints, as one of several threads does."""
    logger = f"E1103 18:23:55.102059 {thread} gpu_cudamallocasync_allocator.cc:73] "
    yield f"{logger}gpu_async_{thread % 10} cuMemAllocAsync failed to allocate 1073741824 bytes: CUDA error: out of memory (CUDA_ERROR_OUT_OF_MEMORY)\n Reported by CUDA: Free memory/Total memory: {free}/15835660288\n"
    yield logger + "Histogram of current allocation: (allocation_size_in_bytes, nb_allocation_of_that_sizes), ...;\n"
    for size, count in sizes:
        yield f"{logger}{size}, {count}\n"
    for name, value in (
        ("RESERVED_MEM_CURRENT", reserved),
        ("USED_MEM_CURRENT", used),
        ("RESERVED_MEM_HIGH", reserved),
        ("USED_MEM_HIGH", used),
    ):
        yield f"{logger}CU_MEMPOOL_ATTR_{name}: {value}\n"


def test_histograms_of_several_gpus_are_told_apart():
    mine = list(async_lines(3413770, [(64, 196), (2147483648, 6)], 529661952, 14260633600, 13958643712))
    other = list(async_lines(3413773, [(128, 7), (4294967296, 2)], 400000000, 9000000000, 8600000000))
    text = mine.pop(0) + other.pop(0)
    while mine or other:
        text += (mine.pop(0) if mine else "") + (other.pop(0) if other else "")
    finding = failures(explain(text))[0]
    assert finding["cause"] == "exhausted"
    assert finding["evidence"]["allocated_bytes"] == 13958643712
    assert finding["evidence"]["free_bytes"] == 529661952
    assert "6 buffers of 2.00 GiB" in [holder["detail"] for holder in finding["holders"]]


@pytest.mark.parametrize("form", ["2018", "2025"])
def test_a_long_map_is_read_to_its_end(form):
    regions = [[(forms.MIB, at % 2 == 0) for at in range(3000)] for _ in range(2)]
    pool = forms.Pool(regions, limit=6000 * forms.MIB, request=64 * forms.MIB)
    finding = failures(explain(NOISE * 3000 + forms.dump(pool, form) + NOISE * 10 + forms.failure(pool) + NOISE))[0]
    assert finding["cause"] == "fragmented"
    assert finding["evidence"]["pool_in_use_bytes"] == 3000 * forms.MIB
    assert finding["evidence"]["pool_regions"] == 2


def test_what_holds_the_memory_is_named_by_its_operation():
    step, put = "xla.execute{executable=jit_train_step}", "jax.device_put"
    region = [
        (300, True, 300, step),
        (100, False),
        (200, True, 200, step),
        (100, False),
        (100, True, 100, put),
        (224, False),
    ]
    pool = forms.Pool(
        [[(size * forms.MIB, *rest) for size, *rest in region]], limit=1024 * forms.MIB, request=300 * forms.MIB
    )
    finding = failures(explain(forms.dump(pool, "2026", "absl") + forms.failure(pool, "jax")))[0]
    held = {holder["location"]["op"]: (holder["bytes"] // forms.MIB, holder["count"]) for holder in finding["holders"]}
    assert held == {step: (500, 2), put: (100, 1)}
