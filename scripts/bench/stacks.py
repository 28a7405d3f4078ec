"""Deepens the recording's stacks to what PyTorch's default history (stacks="all") keeps of a program behind a launcher and a trainer.

The recording holds Python frames of a short script, and none for the backward pass, whose threads have only C++ frames.
"""

SITE = "/usr/local/lib/python3.12/dist-packages/"
PROJECT = "/home/user/project/"

ALLOC_CPP = [
    ("torch::unwind::unwind()", "??", 0),
    ("torch::CapturedTraceback::gather(bool, bool, bool)", "??", 0),
    ("torch::cuda::(anonymous namespace)::gather_with_cpp()", "memory_snapshot.cpp", 0),
    (
        "c10::cuda::CUDACachingAllocator::Native::DeviceCachingAllocator::malloc(unsigned long, CUstream_st*)",
        "CUDACachingAllocator.cpp",
        0,
    ),
    ("c10::cuda::CUDACachingAllocator::Native::NativeCachingAllocator::allocate(unsigned long)", "", 0),
    ("at::detail::empty_generic(c10::ArrayRef<long>, c10::Allocator*, c10::DispatchKeySet, c10::ScalarType)", "??", 0),
]
FREE_CPP = ALLOC_CPP[:3] + [
    ("c10::cuda::CUDACachingAllocator::Native::DeviceCachingAllocator::free(Block*)", "CUDACachingAllocator.cpp", 0),
    ("c10::intrusive_ptr<c10::StorageImpl>::reset_not_null_(c10::StorageImpl*)", "", 0),
    ("c10::TensorImpl::~TensorImpl()", "TensorImpl.cpp", 0),
]
ENGINE = [
    ("torch::autograd::Node::operator()(std::vector<at::Tensor>&&)", "", 0),
    ("torch::autograd::Engine::evaluate_function(std::shared_ptr<GraphTask>&, Node*, InputBuffer&)", "??", 0),
    ("torch::autograd::Engine::thread_main(std::shared_ptr<torch::autograd::GraphTask> const&)", "??", 0),
    ("torch::autograd::Engine::thread_init(int, std::shared_ptr<torch::autograd::ReadyQueue> const&, bool)", "??", 0),
    ("torch::autograd::python::PythonEngine::thread_init(int, std::shared_ptr<ReadyQueue> const&, bool)", "", 0),
    ("std::error_code::default_error_condition() const", "??", 0),
    ("pthread_condattr_setpshared", "??", 0),
    ("__clone", "??", 0),
]
FORWARD_OPS = [
    "linear",
    "addmm",
    "native_layer_norm",
    "gelu",
    "_to_copy",
    "_scaled_dot_product_flash_attention",
    "_log_softmax",
    "embedding",
    "add_Tensor",
    "_foreach_add_",
    "_foreach_mul_",
    "_foreach_addcdiv_",
]
BACKWARD_OPS = [
    ("Mm", "mm"),
    ("Addmm", "addmm"),
    ("NativeLayerNorm", "native_layer_norm_backward"),
    ("Gelu", "gelu_backward"),
    ("ScaledDotProductFlashAttention", "_scaled_dot_product_flash_attention_backward"),
    ("ToCopy", "_to_copy"),
    ("LogSoftmax", "_log_softmax_backward_data"),
    ("Embedding", "embedding_dense_backward"),
]
LAUNCHER = [
    ("_call_impl", SITE + "torch/nn/modules/module.py", 1790),
    ("_wrapped_call_impl", SITE + "torch/nn/modules/module.py", 1779),
    ("forward", SITE + "torch/nn/parallel/distributed.py", 1637),
    ("_run_ddp_forward", SITE + "torch/nn/parallel/distributed.py", 1464),
    ("decorate_autocast", SITE + "torch/amp/autocast_mode.py", 44),
    ("__call__", SITE + "accelerate/utils/operations.py", 807),
    ("forward", SITE + "accelerate/utils/operations.py", 819),
    ("compute_loss", SITE + "transformers/trainer.py", 3791),
    ("training_step", SITE + "transformers/trainer.py", 3736),
    ("_inner_training_loop", SITE + "transformers/trainer.py", 2548),
    ("inner_wrapper", SITE + "accelerate/utils/memory.py", 174),
    ("train", SITE + "transformers/trainer.py", 2245),
    ("fit", PROJECT + "gpt/loop.py", 118),
    ("run_stage", PROJECT + "gpt/stages.py", 61),
    ("run_experiment", PROJECT + "gpt/experiment.py", 203),
    ("wrapper", SITE + "torch/distributed/elastic/multiprocessing/errors/__init__.py", 357),
    ("run_job", SITE + "hydra/core/utils.py", 186),
    ("run", SITE + "hydra/_internal/hydra.py", 119),
    ("<lambda>", SITE + "hydra/_internal/utils.py", 458),
    ("run_and_report", SITE + "hydra/_internal/utils.py", 220),
    ("_run_app", SITE + "hydra/_internal/utils.py", 457),
    ("_run_hydra", SITE + "hydra/_internal/utils.py", 394),
    ("decorated_main", SITE + "hydra/main.py", 94),
    ("main", PROJECT + "train.py", 31),
    ("<module>", PROJECT + "train.py", 36),
]
START = [
    (name, "??", 0)
    for name in (
        "PyEval_EvalCode",
        "PyRun_StringFlags",
        "_PyRun_SimpleFileObject",
        "_PyRun_AnyFileObject",
        "Py_RunMain",
        "Py_BytesMain",
        "__libc_start_main",
        "_start",
    )
]


def dispatch_frames(op):
    return [
        (
            "at::(anonymous namespace)::create_out(c10::ArrayRef<long>, c10::ArrayRef<long>, c10::TensorOptions const&)",
            "RegisterCUDA_0.cpp",
            0,
        ),
        ("at::TensorIteratorBase::allocate_or_resize_outputs()", "??", 0),
        ("at::TensorIteratorBase::build(at::TensorIteratorConfig&)", "??", 0),
        ("at::native::%s(at::Tensor const&, at::Tensor const&)" % op, "??", 0),
        (
            "at::(anonymous namespace)::wrapper_CUDA_%s(at::Tensor const&, at::Tensor const&)" % op,
            "RegisterCUDA_0.cpp",
            0,
        ),
        (
            "c10::impl::wrap_kernel_functor_unboxed_<%s>::call(c10::OperatorKernel*, c10::DispatchKeySet)" % op,
            "RegisterCUDA_0.cpp",
            0,
        ),
        ("at::_ops::%s::redispatch(c10::DispatchKeySet, at::Tensor const&, at::Tensor const&)" % op, "??", 0),
        ("at::native::%s_composite(at::Tensor const&, c10::Scalar const&)" % op, "??", 0),
        (
            "c10::impl::wrap_kernel_functor_unboxed_<%s_composite>::call(c10::OperatorKernel*, c10::DispatchKeySet)"
            % op,
            "RegisterCompositeExplicitAutograd_0.cpp",
            0,
        ),
        ("at::_ops::%s_Scalar::redispatch(c10::DispatchKeySet, at::Tensor const&, c10::Scalar const&)" % op, "??", 0),
        (
            "torch::autograd::VariableType::(anonymous namespace)::%s(c10::DispatchKeySet, at::Tensor const&)" % op,
            "VariableType_1.cpp",
            0,
        ),
        ("at::_ops::%s::call(at::Tensor const&, at::Tensor const&)" % op, "??", 0),
    ]


def forward_frames(python_frames, op):
    """C++ down to the interpreter, whose own frame follows each Python frame."""
    frames = [
        *dispatch_frames(op),
        ("torch::autograd::THPVariable_%s(_object*, _object*, _object*)" % op, "python_torch_functions_0.cpp", 0),
    ]
    for python_frame in (*python_frames, *LAUNCHER):
        frames += [python_frame, ("_PyEval_EvalFrameDefault", "??", 0)]
    return frames + START


def backward_frames(node, op):
    generated = "torch::autograd::generated::%sBackward0" % node
    return [
        *dispatch_frames(op),
        (generated + "_apply_functional(std::vector<at::Tensor>&&, std::array<bool, 2ul>)", "Functions.cpp", 0),
        (generated + "::apply(std::vector<at::Tensor>&&)", "??", 0),
        *ENGINE,
    ]


class Stacks:
    """Frame dicts, one per distinct frame, as PyTorch shares them."""

    def __init__(self):
        self._frames = {}
        self._stacks = {}

    def deepen(self, recorded, is_free, size_bytes):
        """The shared frames of one event's stack; the caller makes a list of its own from them."""
        own = tuple((f["name"], f["filename"], f["line"]) for f in recorded)
        op = size_bytes // 512 % len(FORWARD_OPS if own else BACKWARD_OPS)
        key = (own, is_free, op)
        if key not in self._stacks:
            below = forward_frames(own, FORWARD_OPS[op]) if own else backward_frames(*BACKWARD_OPS[op])
            self._stacks[key] = [self._frame(*frame) for frame in (FREE_CPP if is_free else ALLOC_CPP) + below]
        return self._stacks[key]

    def _frame(self, name, filename, line):
        key = (name, filename, line)
        if key not in self._frames:
            self._frames[key] = {"name": fresh(name), "filename": fresh(filename), "line": line}
        return self._frames[key]


def fresh(text):
    """PyTorch makes a new Python string at each use, which the pickler then writes each time; CPython has only one empty string."""
    return text.encode().decode()
