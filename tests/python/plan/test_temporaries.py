"""The kernel models of a plan against blocks recorded on an H200 (fixtures/plan/kernels.json.gz), and by hand where the GPU differs."""

import sys
from types import SimpleNamespace

import pytest

from common import ROOT

torch = pytest.importorskip("torch")

sys.path[:0] = [str(ROOT / "python"), str(ROOT / "scripts" / "plan_accuracy")]

import check_kernels  # noqa: E402
from faultline.plan.torch.kernels import attention_choice, blas, temporaries  # noqa: E402
from faultline.plan.torch.kernels.copies import transfer_blocks  # noqa: E402
from faultline.plan.torch.kernels.sorting import radix_sort_bytes  # noqa: E402
from faultline.plan.torch.release import releases  # noqa: E402

aten = torch.ops.aten
H200 = check_kernels.H200
A100 = SimpleNamespace(
    compute_capability=(8, 0),
    multi_processor_count=108,
    max_threads_per_multi_processor=2048,
    warp_size=32,
    l2_cache_size=40 << 20,
    name="A100",
)
T4 = SimpleNamespace(
    compute_capability=(7, 5),
    multi_processor_count=40,
    max_threads_per_multi_processor=1024,
    warp_size=32,
    l2_cache_size=4 << 20,
    name="T4",
)


def meta(*size, dtype=torch.float32, stride=None):
    return (
        torch.empty_strided(size, stride, dtype=dtype, device="meta")
        if stride
        else torch.empty(size, dtype=dtype, device="meta")
    )


def blocks(steps):
    return check_kernels.modelled(steps)[0]


@pytest.fixture(scope="module", autouse=True)
def recorded_release():
    """The recordings are of 2.11 with cuDNN 9.19."""
    with releases.assumed("2.11.0+cu130"):
        yield


@pytest.fixture(scope="module")
def results():
    rows = check_kernels.distinct([str(ROOT / "tests" / "fixtures" / "plan" / "kernels.json.gz")])
    return [(row, result) for row in rows if (result := check_kernels.compare(row)) is not None]


ESTIMATED = ("convolution", "_cudnn_rnn", "cudnn_batch_norm", "multinomial", "scaled_dot_product_attention.")


def name_of(row):
    return row["op"].split(".", 1)[1]


def test_the_fixture_holds_the_families(results):
    names = {name_of(row).split(".")[0] for row, _ in results}
    assert {
        "sum",
        "embedding_dense_backward",
        "convolution",
        "convolution_backward",
        "sort",
        "topk",
        "_cudnn_rnn",
        "native_group_norm",
        "_scaled_dot_product_flash_attention_backward",
        "_scaled_dot_product_efficient_attention_backward",
    } <= names


def test_kernels_of_pytorch_itself_are_block_for_block_exact(results):
    wrong = [
        (row["op"], row["in"], want, have)
        for row, (exact, _, _, want, have) in results
        if not exact and not name_of(row).startswith(ESTIMATED)
    ]
    assert not wrong


def test_operations_without_a_model_take_nothing(results):
    silent = [
        (row["op"], want_most, have_most)
        for row, (_, want_most, have_most, _, _) in results
        if name_of(row).split(".")[0] in ("add", "mul", "view", "cat", "gelu", "native_dropout")
    ]
    assert len(silent) >= 5
    assert [row for row in silent if row[1:] != (0, 0)] == []


@pytest.mark.parametrize(
    "family, most_error",
    [
        ("convolution.", 0.025),
        ("convolution_backward", 0.05),
        ("_cudnn_rnn", 0.02),
        ("cudnn_batch_norm.", 0.01),
        ("cudnn_batch_norm_backward", 0.01),
    ],
)
def test_estimates_of_closed_libraries_stay_near_the_recorded_bytes(results, family, most_error):
    mine = [result for row, result in results if name_of(row).startswith(family)]
    recorded, error = sum(r[1] for r in mine), sum(abs(r[1] - r[2]) for r in mine)
    assert recorded > 0
    assert error <= most_error * recorded


def test_convolutions_of_random_shapes(recorded_release):
    """600 of scripts/plan_accuracy/random_cases.py that move 4 MiB or more: what they take beside their results, in all and one by one."""
    rows = check_kernels.rows_of(str(ROOT / "tests" / "fixtures" / "plan" / "random_convolutions.json.gz"))
    found = [check_kernels.compare(row) for row in rows]
    recorded, error = sum(r[1] for r in found), sum(abs(r[1] - r[2]) for r in found)
    assert len(found) == 600 and error <= 0.3 * recorded
    assert sum(abs(r[1] - r[2]) <= max(0.1 * r[1], 1 << 20) for r in found) >= 0.6 * len(found)


def test_most_convolutions_are_within_a_tenth_or_a_mebibyte(results):
    mine = [result for row, result in results if name_of(row).startswith("convolution")]
    assert len(mine) > 20
    near = [r for r in mine if abs(r[1] - r[2]) <= max(0.1 * r[1], 1 << 20)]
    assert len(near) >= 0.85 * len(mine)


# --- reductions on other GPUs


def test_the_buffer_of_a_column_sum_follows_the_multiprocessors():
    x = meta(8192, 4096)
    call = (aten.sum.dim_IntList, (x, [0]), {}, [meta(4096)])
    assert blocks(temporaries.steps(*call, H200)) == [4 * 4096 * 66 * 128, 128]
    assert blocks(temporaries.steps(*call, A100)) == [4 * 4096 * 54 * 128, 128]
    assert blocks(temporaries.steps(*call, T4)) == [4 * 4096 * 10 * 128, 128]


def test_a_sum_over_a_few_rows_needs_no_buffer():
    assert temporaries.steps(aten.sum.dim_IntList, (meta(64, 4096), [0]), {}, [meta(4096)], H200) is None


def test_a_sum_of_more_than_two_gib_runs_in_parts():
    x = meta(1 << 18, 4096)
    taken = blocks(temporaries.steps(aten.sum.dim_IntList, (x, [0]), {}, [meta(4096)], H200))
    assert len(taken) == 4 and taken[0] == taken[2]


def test_an_integer_sum_of_booleans_converts_first():
    assert blocks(
        temporaries.steps(aten.sum.default, (meta(1024, dtype=torch.bool),), {}, [meta(dtype=torch.int64)], H200)
    ) == [8192]


def test_the_result_is_allocated_once_and_blocks_are_returned_once():
    steps = temporaries.steps(aten.sum.dim_IntList, (meta(8192, 4096), [0]), {}, [meta(4096)], H200)
    assert steps == [temporaries.OUT, 138412032, 128, -2, -1]


# --- matrix products


def test_a_product_brings_the_workspace_of_its_library():
    x, weight, bias = meta(64, 32), meta(32, 16), meta(16)
    assert temporaries.persistent(aten.mm.default, (x, weight), {}, H200) == [("cublas", 32 << 20)]
    assert temporaries.persistent(aten.mm.default, (x, weight), {}, T4) == [("cublas", 8519680)]
    assert temporaries.persistent(aten.addmm.default, (bias, x, weight), {}, H200) == [
        ("cublas", 32 << 20),
        ("cublaslt", 1 << 20),
    ]
    assert temporaries.persistent(aten.addmm.default, (bias, x, weight), {"beta": 0.5}, H200) == [("cublas", 32 << 20)]
    assert temporaries.persistent(aten.add.Tensor, (x, x), {}, H200) == []


def test_the_workspace_follows_the_environment(monkeypatch):
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:2:16:8")
    assert blas.cublas_workspace_bytes(H200) == (4096 * 2 + 16 * 8) * 1024
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", "nonsense")
    assert blas.cublas_workspace_bytes(H200) == 32 << 20


def test_an_operand_that_the_library_cannot_read_is_copied():
    x = meta(64, 32, stride=(0, 2))
    assert blocks(temporaries.steps(aten.mm.default, (x, meta(32, 16)), {}, [meta(64, 16)], H200)) == [64 * 32 * 4]
    assert temporaries.steps(aten.mm.default, (meta(32, 64).t(), meta(32, 16)), {}, [meta(64, 16)], H200) is None


# --- sorting, losses, recurrent


def test_a_sort_of_one_digit_needs_no_second_buffer():
    assert radix_sort_bytes(8192, 8, 8, 7) == 4607
    assert radix_sort_bytes(8192, 8, 8) == 150015


def test_a_mean_squared_error_keeps_the_storage_of_the_unreduced_loss():
    x = meta(8, 1000)
    assert temporaries.kept_storage(aten.mse_loss.default, (x, x), {}, H200) == {0: 32000}
    assert temporaries.kept_storage(aten.mse_loss.default, (x, x, 0), {}, H200) is None


def lstm(train=True, weight_buf=None):
    given = dict(
        input=meta(128, 64, 1024),
        weight=[],
        weight_stride0=4,
        weight_buf=weight_buf,
        mode=2,
        hidden_size=1024,
        num_layers=2,
        dropout=0.2,
        train=train,
        bidirectional=False,
        batch_sizes=[],
    )
    return tuple(given.get(a.name) for a in aten._cudnn_rnn.default._schema.arguments)


def test_an_lstm_keeps_its_gates_and_states_for_the_backward_pass():
    assert temporaries.extra_outputs(aten._cudnn_rnn.default, lstm(), {}, H200) == {3: 370147584}
    assert temporaries.extra_outputs(aten._cudnn_rnn.default, lstm(train=False), {}, H200) == {3: 0}
    assert temporaries.extra_outputs(aten._cudnn_rnn.default, lstm(weight_buf=meta(10)), {}, H200)[4] == 0


# --- between host and GPU


class OnHost:
    """What the models ask of a host tensor."""

    def __init__(self, tensor):
        self.device, self.dtype, self.shape, self.stride, self.numel = (
            torch.device("cpu"),
            tensor.dtype,
            tensor.shape,
            tensor.stride,
            tensor.numel,
        )


def test_a_copy_that_waits_converts_on_the_host_and_one_that_does_not_on_the_gpu():
    host, wide, gpu = OnHost(meta(300, 200)), OnHost(meta(300, 200, dtype=torch.float64)), meta(300, 200)
    assert transfer_blocks(gpu, host) == []
    assert transfer_blocks(gpu, wide) == []
    assert transfer_blocks(gpu, wide, non_blocking=True) == [300 * 200 * 8]
    assert transfer_blocks(wide, gpu) == []
    assert transfer_blocks(wide, gpu, non_blocking=True) == [300 * 200 * 8]


def test_a_copy_from_a_transposed_tensor_is_arranged_on_the_gpu():
    assert transfer_blocks(meta(200, 300).t(), OnHost(meta(300, 200))) == [300 * 200 * 4]
    assert transfer_blocks(OnHost(meta(300, 200)), meta(200, 300).t()) == [300 * 200 * 4]
    assert transfer_blocks(OnHost(meta(200, 300).t()), meta(200, 300).t()) == []


# --- which attention runs


def choose(
    gpu,
    dtype=torch.float16,
    t=512,
    s=512,
    d=64,
    heads=8,
    keys=8,
    mask=None,
    dropout=0.0,
    causal=False,
    gqa=False,
    grad=True,
    enabled=None,
):
    q, k, v = meta(2, heads, t, d, dtype=dtype), meta(2, keys, s, d, dtype=dtype), meta(2, keys, s, d, dtype=dtype)
    return attention_choice.choose(q, k, v, mask, dropout, causal, None, gqa, grad, gpu, enabled or {})


def test_hopper_prefers_cudnn_for_half_and_efficient_for_float():
    assert choose(H200) == "cudnn"
    assert choose(H200, dtype=torch.bfloat16, d=256, causal=True) == "cudnn"
    assert choose(H200, t=1, s=300) == "cudnn"
    assert choose(H200, dtype=torch.float32) == "efficient"
    assert choose(H200, t=1, s=300, dropout=0.1) == "flash"
    assert choose(H200, d=100) == "flash"


def test_cudnn_can_be_put_last(monkeypatch):
    monkeypatch.setenv("TORCH_CUDNN_SDPA_DEPRIORITIZED", "1")
    assert choose(H200) == "flash"


def test_ampere_prefers_flash_and_falls_back_by_the_inputs():
    assert choose(A100) == "flash"
    assert choose(A100, mask=meta(2, 1, 512, 512, dtype=torch.float16)) == "efficient"
    assert choose(A100, causal=True, s=600) == "efficient"
    assert choose(A100, d=264) == "efficient"
    assert choose(A100, d=265) == "math"
    assert choose(A100, keys=2, gqa=True) == "flash"
    assert choose(A100, dtype=torch.float32, keys=2, gqa=True) == "math"
    assert choose(A100, dtype=torch.float64) == "math"


def test_turing_has_no_flash_and_no_bfloat16():
    assert choose(T4) == "efficient"
    assert choose(T4, dtype=torch.bfloat16) == "math"


def test_small_ampere_cannot_train_large_heads_with_flash():
    gpu = SimpleNamespace(**{**vars(A100), "compute_capability": (8, 6)})
    assert choose(gpu, d=208) == "efficient"
    assert choose(gpu, d=208, grad=False) == "flash"


def test_switches_of_the_user_are_kept():
    assert choose(H200, enabled={"cudnn": False}) == "flash"
    assert choose(H200, enabled={"cudnn": False, "flash": False}) == "efficient"
    assert choose(H200, enabled={"cudnn": False, "flash": False, "mem_efficient": False}) == "math"
    with pytest.raises(RuntimeError, match="No available kernel"):
        choose(H200, enabled={"cudnn": False, "flash": False, "mem_efficient": False, "math": False})
