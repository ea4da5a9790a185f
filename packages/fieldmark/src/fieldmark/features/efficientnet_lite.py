"""EfficientNet-Lite as ONNX: the packaged networks without torch and timm, whose import takes seconds.

Tan and Le, "EfficientNet: rethinking model scaling for convolutional neural networks" (2019); the Lite variants leave
out squeeze-and-excitation and replace swish by ReLU6. Tensors carry the names that timm gives them, so that a
fingerprint of the weights, and with it the store of features, is the same whichever library computes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fieldmark.errors import InputError
from fieldmark.features.engines import (
    Engine,
    OnnxRuntimeEngine,
    QuickestEngine,
    installed,
    openvino_from_onnx,
    tensors_digest,
)
from fieldmark.features.second_order import Axes, digest_of, onnx_nodes
from fieldmark.features.torch_files import read_tensors
from fieldmark.registry import require

EPSILON = 1e-3  # of the batch norms, as TensorFlow has it
STEM, HEAD, CLASSES = 32, 1280, 1000
OUTPUTS = {"features": HEAD, "logits": CLASSES}
HALF = (0.5, 0.5, 0.5)  # mean and standard deviation that photos are normalized by
OPSET, IR_VERSION = 17, 8
LiteOutput = Literal["features", "stages", "maps", "second-order"]


class Stage(NamedTuple):
    """Blocks in a row that share a form; the first of them may halve the picture."""

    blocks: int
    kernel: int
    stride: int
    expansion: int
    channels: int


STAGES = (
    Stage(1, 3, 1, 1, 16),
    Stage(2, 3, 2, 6, 24),
    Stage(2, 5, 2, 6, 40),
    Stage(3, 3, 2, 6, 80),
    Stage(3, 5, 1, 6, 112),
    Stage(4, 5, 2, 6, 192),
    Stage(1, 3, 1, 6, 320),
)
# Those whose means are features besides those of the head (`output="stages"`).
LAST_STAGES = (len(STAGES) - 2, len(STAGES) - 1)


class Convolution(NamedTuple):
    """One convolution with its batch norm."""

    weight: str
    norm: str
    inputs: int
    outputs: int
    kernel: int = 1
    stride: int = 1
    depthwise: bool = False
    activated: bool = True
    begins: bool = False  # a block whose input is added to its output
    ends: bool = False


@dataclass(frozen=True)
class Variant:
    """How one member of the family is scaled, and the photos it was trained on."""

    width: float
    depth: float
    size_px: int
    crop: float

    def convolutions(self) -> Iterator[Convolution]:
        """All of them, in the order in which they follow each other."""
        yield Convolution("conv_stem", "bn1", 3, STEM, 3, 2)
        before = STEM
        for number, stage in enumerate(STAGES):
            ends = number in (0, len(STAGES) - 1)  # Lite variants deepen neither the first stage nor the last
            blocks = stage.blocks if ends else math.ceil(stage.blocks * self.depth)
            channels = _divisible(stage.channels * self.width)
            for block in range(blocks):
                yield from _block(f"blocks.{number}.{block}", stage, before, channels, stage.stride if not block else 1)
                before = channels
        yield Convolution("conv_head", "bn2", before, HEAD)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each tensor by the name that timm gives it."""
        shapes: dict[str, tuple[int, ...]] = {}
        for one in self.convolutions():
            shapes[f"{one.weight}.weight"] = (one.outputs, 1 if one.depthwise else one.inputs, one.kernel, one.kernel)
            shapes |= {f"{one.norm}.{part}": (one.outputs,) for part in NORM_PARTS}
            shapes[f"{one.norm}.num_batches_tracked"] = ()
        return {**shapes, "classifier.weight": (CLASSES, HEAD), "classifier.bias": (CLASSES,)}


NORM_PARTS = ("weight", "bias", "running_mean", "running_var")
VARIANTS = {
    "efficientnet_lite0": Variant(1.0, 1.0, 224, 0.875),
    "efficientnet_lite1": Variant(1.0, 1.1, 240, 0.882),
    "efficientnet_lite2": Variant(1.1, 1.2, 260, 0.890),
}


def _divisible(channels: float) -> int:
    """Channels rounded to a multiple of eight that is not more than a tenth smaller."""
    rounded = max(8, int(channels + 4) // 8 * 8)
    return rounded if rounded >= 0.9 * channels else rounded + 8


def _block(name: str, stage: Stage, before: int, after: int, stride: int) -> Iterator[Convolution]:
    added = stride == 1 and before == after
    wide = before * stage.expansion
    pointwise, norms = "conv_pw", ("bn1", "bn2")
    if stage.expansion > 1:
        yield Convolution(f"{name}.conv_pw", f"{name}.bn1", before, wide, begins=added)
        pointwise, norms = "conv_pwl", ("bn2", "bn3")
    first, second = (f"{name}.{norm}" for norm in norms)
    yield Convolution(
        f"{name}.conv_dw",
        first,
        wide,
        wide,
        stage.kernel,
        stride,
        depthwise=True,
        begins=added and stage.expansion == 1,
    )
    yield Convolution(f"{name}.{pointwise}", second, wide, after, activated=False, ends=added)


class LiteNetwork:
    """A packaged network: its tensors, and the engines that run them; each is loaded when it is first needed."""

    def __init__(
        self, variant: Variant, weights: Path, output: LiteOutput = "features", axes: Axes | None = None
    ) -> None:
        self.variant, self.weights, self.output, self.axes = variant, weights, output, axes

    @property
    def recipe(self) -> list[Any]:
        """What the features depend on besides the weights; empty for those that go into the classifier."""
        of_axes = [] if self.axes is None else [digest_of(self.axes)]
        return [] if self.output == "features" else [self.output, *of_axes]

    @cached_property
    def tensors(self) -> dict[str, NDArray[Any]]:
        """The tensors by the names that timm gives them. The package has the same order under other names."""
        shapes, given = self.variant.shapes(), list(read_tensors(self.weights).values())
        if [tensor.shape for tensor in given] != list(shapes.values()):
            raise InputError(self.weights, found="tensors of other shapes", expected="the weights of this network")
        return dict(zip(shapes, given, strict=True))

    def __getstate__(self) -> dict[str, Any]:
        """Everything but engines, which another process starts for itself; the file may not lie there."""
        return {name: self.__dict__[name] for name in ("variant", "weights", "output", "axes")} | {
            "tensors": self.tensors
        }

    def engine(self, size_px: int) -> QuickestEngine:
        """What runs the network on photos of a size: ONNX Runtime, or OpenVINO where that is quicker."""
        engines: dict[int, QuickestEngine] = self.__dict__.setdefault("_engines", {})
        if size_px not in engines:
            # Without the network itself, which would hold its engines, and they it.
            graph = partial(onnx_graph, self.variant, self.tensors, self.output, self.axes)
            makers: dict[str, Callable[[], Engine]] = {
                "onnxruntime": lambda: OnnxRuntimeEngine(graph(), HALF, HALF),
                "openvino": lambda: openvino_from_onnx(graph(), size_px, HALF, HALF),
            }
            there = {name: make for name, make in makers.items() if installed(name)}
            # What is quickest for a network is so whatever is made of its maps.
            recipe = [size_px, "stages"] if self.output == "stages" else [size_px]
            engines[size_px] = QuickestEngine(partial(tensors_digest, self.tensors, recipe), there)
        return engines[size_px]

    def onnx_graph(self) -> bytes:
        """The network as an ONNX model for photos of any number and size."""
        return onnx_graph(self.variant, self.tensors, self.output, self.axes)


def onnx_graph(
    variant: Variant, tensors: dict[str, NDArray[Any]], output: LiteOutput = "features", axes: Axes | None = None
) -> bytes:
    """A network as an ONNX model for photos of any number and size.

    Args:
        variant: Which network.
        tensors: Its weights.
        output: "features" and logits; or in place of both the means of the last two "stages", each of unit length, the
            "maps" of the last one and plain features, or these in "second-order" beside them (`features.second_order`).
        axes: Those of second order.
    """
    onnx: Any = require("onnx", "A packaged backbone")
    make: Any = require("onnx.helper", "A packaged backbone")
    arrays: Any = require("onnx.numpy_helper", "A packaged backbone")
    nodes, at, ends = _convolution_nodes(make, variant, head=output != "stages")
    held: dict[str, NDArray[Any]] = {"zero": np.array(0, np.float32), "six": np.array(6, np.float32)}
    widths: dict[str, list[Any] | None] = {"features": ["photos", "features"]}
    if output == "stages":
        for stage in LAST_STAGES:
            nodes += _mean_nodes(make, ends[stage], f"mean.{stage}")
            nodes.append(make.make_node("LpNormalization", [f"mean.{stage}"], [f"unit.{stage}"], axis=1, p=2))
        nodes.append(make.make_node("Concat", [f"unit.{stage}" for stage in LAST_STAGES], ["features"], axis=1))
    elif output == "maps":
        held["by position"] = np.array([0, 0, -1])
        nodes.append(make.make_node("Reshape", [ends[len(STAGES) - 1], "by position"], ["maps"]))
        nodes += _mean_nodes(make, at, "features")
        widths = {"maps": None, "features": ["photos", HEAD]}
    elif axes is not None:
        nodes += _mean_nodes(make, at, "plain")
        further, arrays_of_axes = onnx_nodes(ends[len(STAGES) - 1], "plain", axes)
        nodes, held = nodes + further, held | arrays_of_axes
    else:
        nodes += _mean_nodes(make, at, "features")
        nodes.append(make.make_node("Gemm", ["features", "classifier.weight", "classifier.bias"], ["logits"], transB=1))
        widths = {name: ["photos", width] for name, width in OUTPUTS.items()}
    read = {name for node in nodes for name in node.input}
    used = {name: array for name, array in (tensors | held).items() if name in read}
    single = onnx.TensorProto.FLOAT
    graph = make.make_graph(
        nodes,
        "efficientnet_lite",
        [make.make_tensor_value_info("pixels", single, ["photos", 3, "height", "width"])],
        [make.make_tensor_value_info(name, single, shape) for name, shape in widths.items()],
        [arrays.from_array(np.ascontiguousarray(array), name) for name, array in used.items()],
    )
    model = make.make_model(graph, opset_imports=[make.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    return bytes(model.SerializeToString())


def _convolution_nodes(make: Any, variant: Variant, *, head: bool) -> tuple[list[Any], str, dict[int, str]]:
    """The convolutions of a network, with or without the last one.

    Returns:
        The nodes, the name of what comes out of them, and the name of what comes out of each stage.
    """
    nodes, at, kept = [], "pixels", ""
    ends: dict[int, str] = {}
    for one in variant.convolutions():
        if one.weight == "conv_head" and not head:
            break
        kept = at if one.begins else kept
        inputs = [at, f"{one.weight}.weight"]
        padding = {"auto_pad": "SAME_UPPER", "strides": [one.stride] * 2, "group": one.inputs if one.depthwise else 1}
        nodes.append(make.make_node("Conv", inputs, [one.weight], kernel_shape=[one.kernel] * 2, **padding))
        parts = [f"{one.norm}.{part}" for part in NORM_PARTS]
        nodes.append(make.make_node("BatchNormalization", [one.weight, *parts], [one.norm], epsilon=EPSILON))
        at = one.norm
        if one.activated:
            nodes.append(make.make_node("Clip", [at, "zero", "six"], [f"{at}.act"]))
            at = f"{at}.act"
        if one.ends:
            nodes.append(make.make_node("Add", [at, kept], [f"{at}.sum"]))
            at = f"{at}.sum"
        if not one.activated:
            ends[int(one.weight.split(".")[1])] = at
    return nodes, at, ends


def _mean_nodes(make: Any, maps: str, name: str) -> list[Any]:
    """The mean of maps over their positions, under a name."""
    pooled = f"{name}.pooled"
    return [make.make_node("GlobalAveragePool", [maps], [pooled]), make.make_node("Flatten", [pooled], [name])]
