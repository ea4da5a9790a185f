"""The weights of a graph in single or half precision, or in 8 bits: how large the file is, and what that costs.

Numbers are computed in single precision always; what is stored smaller is turned back when a session starts. In 8 bits
each output channel of a convolution or a product has a step of its own (the largest weight is 127 steps).
"""

from __future__ import annotations

from typing import Any, Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from fieldmark.registry import require

Precision = Literal["single", "half", "8-bit"]
PRECISIONS: Final[tuple[Precision, ...]] = get_args(Precision)
# Smaller arrays (biases, norms) stay as they are: they weigh nothing, and much depends on them.
LEAST_VALUES = 1024


def with_precision(proto: Any, precision: Precision) -> Any:
    """A copy of an ONNX model with its weights stored in some precision."""
    onnx: Any = require("onnx", "Exporting a model")
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    if precision == "single":
        return copy
    channel = _channels(copy.graph)
    stored, nodes = [], []
    for array in copy.graph.initializer:
        values = onnx.numpy_helper.to_array(array)
        if array.name not in channel or values.dtype != np.float32 or values.size < LEAST_VALUES:
            stored.append(array)
            continue
        arrays, own = _stored(onnx, array.name, values, channel[array.name], precision)
        stored += arrays
        nodes += own
    network = list(copy.graph.node)
    del copy.graph.initializer[:], copy.graph.node[:]
    copy.graph.initializer.extend(stored)
    copy.graph.node.extend([*nodes, *network])
    return copy


def _channels(graph: Any) -> dict[str, int]:
    """The weights of convolutions and products, and along which axis their output channels lie."""
    axis = {}
    for node in graph.node:
        if node.op_type == "Conv":
            axis[node.input[1]] = 0
        elif node.op_type == "Gemm":
            across = any(one.name == "transB" and one.i for one in node.attribute)
            axis[node.input[1]] = 0 if across else 1
        elif node.op_type == "MatMul":
            axis[node.input[1]] = 1
    return axis


def _stored(onnx: Any, name: str, values: NDArray[Any], axis: int, precision: Precision) -> tuple[list[Any], list[Any]]:
    """Weights as they are stored, and the nodes that turn them back."""
    make, arrays, single = onnx.helper, onnx.numpy_helper, onnx.TensorProto.FLOAT
    if precision == "half":
        kept = arrays.from_array(values.astype(np.float16), f"{name}.half")
        return [kept], [make.make_node("Cast", [kept.name], [name], to=single)]
    others = tuple(number for number in range(values.ndim) if number != axis)
    step = np.maximum(np.abs(values).max(axis=others, keepdims=True) / 127, np.finfo(np.float32).tiny)
    whole = arrays.from_array(np.rint(values / step).astype(np.int8), f"{name}.steps")
    scale = arrays.from_array(step.astype(np.float32), f"{name}.step")
    cast = make.make_node("Cast", [whole.name], [f"{name}.whole"], to=single)
    return [whole, scale], [cast, make.make_node("Mul", [f"{name}.whole", scale.name], [name])]
