"""What an operation would return, without running it: TensorFlow's own shape inference, on a graph of that one operation."""

from __future__ import annotations

import itertools
import math

_MOST_VALUES = 64  # of a small argument whose numbers may be a shape
_known: dict = {}

# The result is the memory of the first argument.
SHARES = frozenset(
    "Identity IdentityN Reshape Squeeze ExpandDims StopGradient PreventGradient EnsureShape Bitcast ReadVariableOp Snapshot PlaceholderWithDefault CheckNumerics Enter Exit".split()
)
# The result takes the place of an argument that nothing else uses.
IN_PLACE = frozenset(
    "AddV2 Add Sub Mul RealDiv Div Maximum Minimum Neg Exp Log Log1p Sqrt Rsqrt Square Abs Tanh Sigmoid Relu Relu6 Elu Selu LeakyRelu Gelu Softplus Erf Sign Pow BiasAdd AddN "
    "ReluGrad TanhGrad SigmoidGrad Relu6Grad EluGrad SoftplusGrad LeakyReluGrad RsqrtGrad SqrtGrad SquaredDifference Select SelectV2 ClipByValue DivNoNan Softmax LogSoftmax".split()
)
# Each number of the result is made of those in its place.
EACH_BY_ITSELF = IN_PLACE | frozenset(
    "Cast Less LessEqual Greater GreaterEqual Equal NotEqual LogicalAnd LogicalOr LogicalNot Sin Cos FloorDiv FloorMod ZerosLike OnesLike".split()
) - {"Softmax", "LogSoftmax"}
# The first argument is the result's shape.
MADE_TO_SIZE = frozenset("RandomStandardNormal RandomUniform TruncatedNormal Fill".split())
# The results are numbers of shapes, which are known where the tensors' own numbers are not.
OF_SHAPES = frozenset("Shape ShapeN Size Rank".split())
_ON_HOST = frozenset("int32 string resource variant".split())
# Their GPU kernels leave whole numbers of 32 bits on the GPU; all others are registered with these in the host's memory.
_INT32_ON_GPU = frozenset(
    "Cast Bitcast TopK TopKV2 ArgMax ArgMin OneHot Gather GatherV2 GatherNd Tile Transpose Roll Select SelectV2 RandomUniformInt StatelessRandomUniformInt StatelessRandomUniformIntV2 "
    "StatelessRandomUniformFullInt StatelessRandomUniformFullIntV2 Multinomial StatelessMultinomial BitwiseAnd BitwiseOr BitwiseXor Invert LeftShift RightShift Unique UniqueV2 "
    "UniqueWithCounts UniqueWithCountsV2 Bucketize LowerBound UpperBound UnsortedSegmentSum DynamicPartition".split()
)


def is_on_gpu(dtype: str, made_by: str = "") -> bool:
    """TensorFlow keeps 32-bit whole numbers, most of them shapes and places, in the host's memory, where no kernel of the GPU has made them."""
    return dtype not in _ON_HOST or (dtype == "int32" and made_by in _INT32_ON_GPU)


def is_brought_to_host(dtype: str, name: str) -> bool:
    """The result of an operation of SHARES is none of the GPU's, also where what it is made of is."""
    return dtype == "int32" and name not in _INT32_ON_GPU


# The GPU's kernels of these work in scratch memory beside their results.
IN_SCRATCH = frozenset(["Multinomial", "StatelessMultinomial"])


def scratch_of(given, result) -> list:
    """Of what they work in, the shapes of float32, by the shapes of their first argument and of their first result: a noise and a score for each sample and class."""
    return [(*result, given[-1])] * 2 if given and result else []


def dims(tensor) -> tuple:
    """Its shape in plain numbers; with version 1's behaviour TensorFlow's own are objects."""
    return tuple(tensor.shape.as_list())


def is_plain(dtype) -> bool:
    """Can a tensor of zeros stand for it?"""
    return dtype.name not in ("string", "resource", "variant")


def bytes_of(shape, dtype) -> int:
    return math.prod(shape) * dtype.size if dtype.size else 0


def most_elements(name: str, inputs) -> int | None:
    """No result of it has more, by its arguments alone; None: that takes TensorFlow's inference."""
    if name in EACH_BY_ITSELF:
        most = 1
        for sides in itertools.zip_longest(*(reversed(dims(t)) for t in inputs), fillvalue=1):
            most *= max(sides)
        return most
    if name in MADE_TO_SIZE:
        shape = inputs[0]
        return math.prod(shape.numpy().tolist()) if shape.dtype.is_integer and shape.shape.rank == 1 else None
    return None


def results_of(name: str, inputs, attributes, count: int):
    """A list of (shape, dtype) for each result; None in the place of a shape that depends on numbers. None: it could not be told."""
    values = []
    for tensor in inputs:
        small = (
            tensor.dtype.is_integer
            and tensor.shape.num_elements() is not None
            and tensor.shape.num_elements() <= _MOST_VALUES
        )
        values.append(tuple(tensor.numpy().reshape(-1).tolist()) if small else None)
    try:
        key = (name, count, tuple((t.dtype, dims(t), v) for t, v in zip(inputs, values)), repr(attributes))
    except (TypeError, ValueError):
        return None
    if key not in _known:
        if len(_known) > 20000:
            _known.clear()
        _known[key] = _infer(name, inputs, values, attributes)
    return _known[key]


def _infer(name: str, inputs, values, attributes):
    from tensorflow.core.framework import node_def_pb2
    from tensorflow.python.framework import dtypes, op_def_registry

    definition = op_def_registry.get(name)
    if definition is None or any(t.dtype in (dtypes.resource, dtypes.variant) for t in inputs):
        return None
    try:
        node = node_def_pb2.NodeDef(op=name, name="asked")
        given = dict(zip(attributes[::2], attributes[1::2]))
        for attribute in definition.attr:
            if attribute.name in given:
                _set(node.attr[attribute.name], attribute.type, given[attribute.name])
            elif attribute.HasField("default_value"):
                node.attr[attribute.name].CopyFrom(attribute.default_value)
        return [
            (shape if is_known(shape) else None, dtype)
            for shape, dtype, _ in of_node(
                definition, node, [(t.dtype, dims(t), v) for t, v in zip(inputs, values)], False
            )
        ]
    except Exception:  # whatever does not hold is for the operation itself to say
        return None


def is_known(shape) -> bool:
    return shape is not None and None not in shape


def handle_of(tensor):
    """What a variable's handle says of the variable; None: it does not."""
    from tensorflow.python.ops import handle_data_util

    try:
        told = handle_data_util.get_resource_handle_data(tensor)
    except (AttributeError, TypeError):
        return None
    return told if told is not None and told.is_set else None


def shape_behind(tensor) -> tuple | None:
    """A variable's, of which this is the handle."""
    told = handle_of(tensor)
    if told is None or not told.shape_and_type or told.shape_and_type[0].shape.unknown_rank:
        return None
    sides = tuple(side.size for side in told.shape_and_type[0].shape.dim)
    return None if -1 in sides else sides


def of_node(definition, node, given, with_values: bool, handles=()) -> list[tuple]:
    """(shape, type, numbers) of each result of an operation by TensorFlow's own inference. `given` are its arguments: type, shape (None for what is not known), numbers or None. Numbers are told
    where all of the arguments' are known and few. `handles`: what resources say of variables. Raises what TensorFlow raises."""
    import numpy as np
    from tensorflow.python.client import pywrap_tf_session
    from tensorflow.python.framework import constant_op, ops
    from tensorflow.python.ops import array_ops, handle_data_util

    with ops.Graph().as_default() as graph:
        fed = [
            array_ops.placeholder(dtype, shape)
            if numbers is None
            else constant_op.constant(np.reshape(numbers, shape), dtype, shape)
            for dtype, shape, numbers in given
        ]
        for tensor, handle in zip(fed, handles):
            if handle is not None:
                handle_data_util.set_handle_data(tensor, handle)
        at, grouped = 0, []
        for argument in definition.input_arg:
            length = None
            if argument.number_attr:
                length = node.attr[argument.number_attr].i
            elif argument.type_list_attr:
                length = len(node.attr[argument.type_list_attr].list.type)
            grouped.extend(fed[at : at + (1 if length is None else length)])
            at += 1 if length is None else length
        made = ops.Operation.from_node_def(node, graph, inputs=grouped)
        computed = with_values and not definition.is_stateful and all(numbers is not None for _, _, numbers in given)
        told = []
        for out in made.outputs:
            shape = tuple(out.shape.as_list()) if out.shape.rank is not None else None
            numbers = None
            if computed and is_plain(out.dtype) and (not is_known(shape) or math.prod(shape) <= _MOST_VALUES):
                numbers = pywrap_tf_session.TF_TryEvaluateConstant_wrapper(graph._c_graph, out._as_tf_output())
                shape = shape if numbers is None else np.shape(numbers)
            told.append((shape, out.dtype, numbers))
        return told


def _set(value, kind: str, given) -> None:
    from tensorflow.python.framework import dtypes, tensor_shape

    def one(into, kind, given):
        if kind == "type":
            into("type", int(given) if isinstance(given, int) else dtypes.as_dtype(given).as_datatype_enum)
        elif kind == "shape":
            into("shape", tensor_shape.TensorShape(given).as_proto())
        elif kind == "string":
            into("s", given if isinstance(given, bytes) else str(given).encode())
        elif kind in ("int", "bool", "float"):
            into({"int": "i", "bool": "b", "float": "f"}[kind], given)
        else:
            raise ValueError(kind)

    def single(field, item):
        value.shape.CopyFrom(item) if field == "shape" else setattr(value, field, item)

    def listed(field, item):
        value.list.shape.add().CopyFrom(item) if field == "shape" else getattr(value.list, field).append(item)

    if kind.startswith("list("):
        value.list.SetInParent()
        for item in given:
            one(listed, kind[5:-1], item)
    else:
        one(single, kind, given)
