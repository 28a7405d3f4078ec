"""Maps of pools that are cut, out of order or beside other lines: what is told holds for the pool that was made, and what nothing tells is not claimed. Each with its whole twin."""

import json
import re
import subprocess
import sys

import pytest

from common import FAULTLINE, ROOT

sys.path.insert(0, str(ROOT / "scripts" / "bfc"))
import dump_forms as forms  # noqa: E402

CAUSES = {"regions": "fragmented", "slack": "fragmented", "refused": "outside-framework"}
OLD = ("2016", "2018")  # no line names a region


def explain(text):
    done = subprocess.run([FAULTLINE, "explain", "--format", "json", "-"], input=text, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    return json.loads(done.stdout)


def failure_of(text):
    (finding,) = [one for one in explain(text)["findings"] if one["rule"] == "memory/out-of-memory"]
    return finding


def words_of(finding):
    return "\n".join([finding["message"], *(attempt["what"] for attempt in finding["tries"])])


def cause_of(situation):
    return CAUSES.get(situation, situation)


def lines_of(pool, form, prefix="tensorflow"):
    return forms.dump(pool, form, prefix).splitlines(keepends=True)


def is_chunk(line):
    return re.search(r"(Chunk|InUse|Free )\s*at ", line) is not None


def chunks_then_free(lines):
    """All that are in use, then all that are free, as logs of before TensorFlow 1.14 have been seen."""
    first = next(at for at, line in enumerate(lines) if is_chunk(line))
    used = [line for line in lines if is_chunk(line) and "Free " not in line]
    free = [line for line in lines if is_chunk(line) and "Free " in line]
    rest = [line for line in lines if not is_chunk(line)]
    return rest[:first] + used + free + rest[first:]


def backwards(lines):
    chunks = [line for line in lines if is_chunk(line)]
    return [chunks.pop() if is_chunk(line) else line for line in lines]


def doubled(lines):
    first = next(at for at, line in enumerate(lines) if is_chunk(line))
    chunks = [line for line in lines if is_chunk(line)]
    return lines[:first] + chunks + lines[first:]


@pytest.mark.parametrize("situation", forms.SITUATIONS)
@pytest.mark.parametrize("form", OLD)
@pytest.mark.parametrize("order", [chunks_then_free, backwards, doubled])
def test_chunks_in_any_order_are_one_map(form, situation, order):
    pool = forms.situation(situation)
    lines = lines_of(pool, form)
    finding, twin = (failure_of("".join(some) + forms.failure(pool)) for some in (order(lines), lines))
    assert finding["cause"] == twin["cause"] == cause_of(situation)
    assert finding["message"] == twin["message"]
    assert finding["tries"] == twin["tries"]  # the limit that was tried among them
    assert finding["evidence"] | {"line_in_text": 0} == twin["evidence"] | {"line_in_text": 0}
    assert finding["evidence"]["pool_regions"] == len(pool.regions)


def without(lines, leaves_out):
    return [line for line in lines if not leaves_out(line)]


def between(lines, begin, end):
    """From the share of its chunks `begin` to that at `end`; the rest of the map is gone."""
    places = [at for at, line in enumerate(lines) if is_chunk(line) or "Next region" in line]
    first, last = places[int(begin * len(places))], places[min(int(end * len(places)), len(places) - 1)]
    return first, last


CUTS = {
    "the free chunks": lambda lines: without(lines, lambda line: is_chunk(line) and "Free " in line),
    "the chunks in use": lambda lines: without(lines, lambda line: is_chunk(line) and "Free " not in line),
    "all chunks": lambda lines: without(lines, lambda line: is_chunk(line) or "Next region" in line),
    "the last chunk": lambda lines: lines[: between(lines, 0, 1)[1]] + lines[between(lines, 0, 1)[1] + 1 :],
    "the end from the middle on": lambda lines: lines[: between(lines, 0, 0.5)[1]],
    "the end from the summary on": lambda lines: lines[: next(i for i, one in enumerate(lines) if "Summary of" in one)],
    "the beginning to the middle": lambda lines: lines[between(lines, 0, 0.5)[1] :],
    "the bins": lambda lines: without(lines, lambda line: "Total Chunks" in line),
    "the bins and the end": lambda lines: without(lines, lambda line: "Total Chunks" in line)[
        : between(without(lines, lambda line: "Total Chunks" in line), 0, 0.7)[1]
    ],
    "the middle": lambda lines: lines[: between(lines, 0.3, 0.7)[0]] + lines[between(lines, 0.3, 0.7)[1] :],
    "every third chunk": lambda lines: [line for at, line in enumerate(lines) if not (is_chunk(line) and at % 3 == 0)],
    "all but statistics": lambda lines: lines[next(i for i, one in enumerate(lines) if "Stats:" in one) :],
}


def test_what_lies_between_the_pieces_of_a_cut_map_is_not_judged():
    pool = forms.situation("fragmented")
    lines = lines_of(pool, forms.FORMS[-1])
    judged = [
        {one["rule"] for one in explain("".join(given) + forms.failure(pool))["findings"]}
        for given in (lines, CUTS["the middle"](lines))
    ]
    assert ["memory/fragmentation" in rules for rules in judged] == [True, False]
    assert all("memory/out-of-memory" in rules for rules in judged)


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("form", forms.FORMS)
def test_a_cut_map_claims_nothing_false(form, cut):
    situation = forms.SITUATIONS[(forms.FORMS.index(form) + list(CUTS).index(cut)) % len(forms.SITUATIONS)]
    pool = forms.situation(situation)
    lines = CUTS[cut](lines_of(pool, form))
    finding = failure_of("".join(lines) + forms.failure(pool))
    cause = finding.get("cause", "")
    # what chunks have beyond their requests stands in the bins alone
    knows_slack = any("Total Chunks" in line for line in lines)
    assert cause in ("", cause_of(situation) if situation != "slack" or knows_slack else "exhausted"), finding[
        "message"
    ]
    assert "nothing is free" not in finding["message"]
    evidence = finding["evidence"]
    near = pool.taken // 100
    if "pool_free_bytes" in evidence and cause:
        assert abs(evidence["pool_free_bytes"] - pool.free) <= near, finding["message"]
    if "pool_regions" in evidence:
        assert evidence["pool_regions"] <= len(pool.regions)
    for attempt in finding["tries"]:  # what was tried was the pool that was
        if attempt["confirmed"]:
            (mib,) = [int(words) for words in re.findall(r"(\d+) MiB", attempt["what"])]
            assert mib >= (pool.taken + pool.rounded) // forms.MIB


@pytest.mark.parametrize("form", forms.FORMS)
def test_what_is_free_is_told_by_the_bins_where_its_lines_are_gone(form):
    pool = forms.situation("fragmented")
    finding = failure_of("".join(CUTS["the free chunks"](lines_of(pool, form))) + forms.failure(pool))
    assert finding["cause"] == "fragmented", finding["message"]
    assert abs(finding["evidence"]["pool_free_bytes"] - pool.free) <= pool.taken // 100


@pytest.mark.parametrize("form", forms.FORMS)
def test_the_summary_by_size_names_what_holds_the_memory(form):
    pool = forms.situation("fragmented")
    held = {"a chunk of 300.00 MiB", "a chunk of 100.00 MiB", "a chunk of 24.00 MiB"}
    for cut in ("all chunks", "the chunks in use"):
        finding = failure_of("".join(CUTS[cut](lines_of(pool, form))) + forms.failure(pool))
        assert {holder["detail"] for holder in finding["holders"]} == held


@pytest.mark.parametrize("form", ["2019", "2021", "2023"])
@pytest.mark.parametrize(
    "unasked, request_bytes, cause",
    [
        (200, 256 << 10, "exhausted"),  # rounding to 256 bytes: no setting and no other allocator gives it back
        (0, 256 << 10, "exhausted"),
        (24 << 10, 1 << 20, "fragmented"),  # chunks half as large again as what was asked for
    ],
)
def test_rounding_is_no_slack(form, unasked, request_bytes, cause):
    region = [(64 * forms.KIB, True, 64 * forms.KIB - unasked) for _ in range(4000)]
    pool = forms.Pool([region], limit=4000 * 64 * forms.KIB + 153, request=request_bytes)
    finding = failure_of(forms.dump(pool, form) + forms.failure(pool))
    assert finding["cause"] == cause, finding["message"]


@pytest.mark.parametrize("free_mib, cause", [(8, ""), (100, "fragmented")])
def test_pieces_of_a_full_pool_are_no_cause(free_mib, cause):
    piece = free_mib * forms.MIB // 4
    region = [part for _ in range(4) for part in ((256 * forms.MIB - piece, True), (piece, False))]
    pool = forms.Pool([region], limit=1024 * forms.MIB, request=piece * 2)
    finding = failure_of(forms.dump(pool, "2023") + forms.failure(pool))
    assert finding.get("cause", "") == cause, finding["message"]
    assert ("in effect full" in finding["message"]) == (cause == "")


FOUND = {
    "2016": "I tensorflow/core/common_runtime/gpu/gpu_device.cc:885] Found device 0 with properties: \nname: TITAN X\npciBusID 0000:04:00.0\nTotal memory: 11.90GiB\nFree memory: {}\n",
    "2018": "2018-05-01 12:00:00.0: I tensorflow/core/common_runtime/gpu/gpu_device.cc:1356] Found device 0 with properties: \nname: TITAN X major: 6 minor: 1 memoryClockRate(GHz): 1.582\npciBusID: 0000:01:00.0\ntotalMemory: 11.90GiB freeMemory: {}\n",
}
CREATED = {
    "2018": "2018-05-01 12:00:00.2: I tensorflow/core/common_runtime/gpu/gpu_device.cc:1053] Created TensorFlow device (/job:localhost/replica:0/task:0/device:GPU:0 with {} MB memory) -> physical GPU (device: 0, name: TITAN X, pci bus id: 0000:01:00.0, compute capability: 6.1)\n",
    "2021": "2021-05-01 12:00:00.2: I tensorflow/core/common_runtime/gpu/gpu_device.cc:1510] Created device /job:localhost/replica:0/task:0/device:GPU:0 with {} MB memory:  -> device: 0, name: Tesla T4, pci bus id: 0000:00:04.0, compute capability: 7.5\n",
}


def small_pool():
    """125 MiB, all of it taken, 25 MiB free in one piece, 64 MiB requested."""
    return forms.Pool(
        [[(100 * forms.MIB, True), (25 * forms.MIB, False)]], limit=125 * forms.MIB, request=64 * forms.MIB
    )


@pytest.mark.parametrize("era", FOUND)
@pytest.mark.parametrize("has_map", [True, False])
@pytest.mark.parametrize("free, is_cause", [("350.12MiB", True), ("11.70GiB", False)])
def test_a_gpu_that_was_full_before_tensorflow_began(era, has_map, free, is_cause):
    pool = small_pool()
    text = FOUND[era].format(free) + (forms.dump(pool, "2018") if has_map else "") + forms.failure(pool)
    finding = failure_of(text)
    assert finding.get("cause", "") == ("other-process" if is_cause else "exhausted" if has_map else "")
    assert ("of its 11.90 GiB was free when it began" in finding["message"]) == is_cause
    assert ("nvidia-smi" in finding["tries"][0]["what"]) == is_cause


def test_of_several_gpus_that_of_the_message():
    found = FOUND["2018"]
    text = found.format("11.70GiB") + found.replace("device 0", "device 1").format("350.12MiB")
    assert "when it began" not in failure_of(text + forms.failure(small_pool()))["message"]
    other = forms.failure(small_pool()).replace("GPU:0", "GPU:1").replace("GPU_0", "GPU_1")
    assert "when it began" in failure_of(text + other)["message"]


def test_pieces_are_not_blamed_on_others():
    pool = forms.situation("fragmented")
    finding = failure_of(FOUND["2018"].format("350.12MiB") + forms.dump(pool, "2018") + forms.failure(pool))
    assert finding["cause"] == "fragmented"


@pytest.mark.parametrize("era", CREATED)
@pytest.mark.parametrize("has_map", [True, False])
@pytest.mark.parametrize("mib, is_small", [(125, True), (13757, False)])
def test_a_pool_that_was_made_small(era, has_map, mib, is_small):
    pool = small_pool()
    text = CREATED[era].format(mib) + (forms.dump(pool, "2018") if has_map else "") + forms.failure(pool)
    assert ("The pool was made with" in failure_of(text)["message"]) == is_small


def refusal(bytes_refused, second=50):
    short = forms.human(bytes_refused).replace("iB", "")
    return f"2024-05-01 12:34:{second}.0: E tensorflow/stream_executor/cuda/cuda_driver.cc:806] failed to allocate {short} ({bytes_refused} bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory\n"


@pytest.mark.parametrize(
    "refused, cause",
    [
        ([708 * forms.MIB], "outside-framework"),  # 2018 prints the request in two digits
        ([1000 * forms.MIB, 900 * forms.MIB, 810 * forms.MIB, 729 * forms.MIB], "outside-framework"),
        ([8192 * forms.MIB], ""),  # whether the request itself would have been refused is not told
        ([400 * forms.MIB], ""),
        ([], ""),
    ],
)
@pytest.mark.parametrize("has_map", [True, False])
def test_what_the_driver_refused_before_the_failure(refused, cause, has_map):
    pool = forms.situation("refused")
    pool.refused = 0
    dump = [line for line in lines_of(pool, "2018") if "Limit:" not in line] if has_map else []
    text = "".join(map(refusal, refused)) + "".join(dump) + forms.failure(pool)
    finding = failure_of(text)
    assert finding.get("cause", "") == cause, finding["message"]
    assert ("refused_region_bytes" in finding["evidence"]) == bool(refused)


def test_refusals_of_the_host_are_not_the_gpus():
    pool = forms.situation("refused")
    pool.refused = 0
    host = "2024-05-01 12:34:50.0: E tensorflow/stream_executor/cuda/cuda_driver.cc:806] failed to alloc 700000000 bytes on host: CUDA_ERROR_OUT_OF_MEMORY: out of memory\n"
    finding = failure_of(host + forms.dump(pool, "2018") + forms.failure(pool))
    assert "refused_region_bytes" not in finding["evidence"]
    pool.name = "cuda_host_bfc"
    finding = failure_of(host + forms.dump(pool, "2018") + forms.failure(pool))
    assert finding["evidence"]["refused_region_bytes"] == 700000000
    assert finding.get("cause", "") == ""  # it is the host's memory, not what lies outside on the GPU
    assert "free -h" in words_of(finding) and "per_process_gpu_memory_fraction" not in words_of(finding)


@pytest.mark.parametrize("framework", ["jax", "tensorflow"])
def test_a_constant_lies_outside_the_pool(framework):
    head = 'Traceback (most recent call last):\n  File "/home/user/project/train.py", line 4, in <module>\n    f(x)\n'
    error = {
        "jax": "jaxlib.xla_extension.XlaRuntimeError: INTERNAL: Failed to allocate 402653184 bytes for new constant\n",
        "tensorflow": "tensorflow.python.framework.errors_impl.InternalError: Failed to allocate 402653184 bytes for new constant [Op:__inference_step_12]\n",
    }
    words = words_of(failure_of(head + error[framework]))
    assert "outside the memory pool" in words and "as an argument" in words
    assert "0.95" not in words and "in its memory pool" not in words
    assert ("XLA_PYTHON_CLIENT_PREALLOCATE=false" in words) == (framework == "jax")
    assert ("TF_FORCE_GPU_ALLOW_GROWTH=true" in words) == (framework == "tensorflow")
