"""A whole model as one ONNX graph: photos as squares of bytes in, scores of labels out.

Whatever comes between is inside: normalization, the network, the mean over views, half precision as the store of
features keeps it, and the method on top. Where the graph runs (Python, a browser), nothing of it is written twice.

| input | what |
|---|---|
| `squares` | the views of one photo, views x height x width x 3, bytes |
| `boxes` | for fine-tuned networks: which part of the square is shown, 1 x 4 |

| output | what |
|---|---|
| `scores` | one row with one column per label |
| `embedding` | what the network says before the method, one row; not for fine-tuned networks |
| `unknown` | how strange the photo looks, where the method says so |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldmark.errors import MisuseError
from fieldmark.exporting.onnx import traced, whole_network
from fieldmark.features.packaged import PackagedBackbone
from fieldmark.features.photos import Preprocessing, views_of
from fieldmark.methods.base import Arrays, Method
from fieldmark.methods.centroid import Centroid
from fieldmark.methods.headed import Headed
from fieldmark.methods.knn import NearestNeighbors
from fieldmark.methods.lda import Discriminant
from fieldmark.methods.linear import Linear
from fieldmark.methods.openset import AVERAGE, COMBINED, HEAD, LEARNED, Combination, OpenSet
from fieldmark.methods.prototypes import Prototypes, power_of
from fieldmark.methods.ridge import Ridge
from fieldmark.models import Model
from fieldmark.models.supply import FeatureSource
from fieldmark.registry import require
from fieldmark.steps.novelty import SCORES, Whitening
from fieldmark.tables.media import PHOTO

TINY = np.finfo(np.float32).tiny


@dataclass(frozen=True)
class AnsweringNetwork:
    """A model as a graph, and how photos become what it takes.

    Args:
        graph: The ONNX model.
        views: The squares of a photo, for features; empty for fine-tuned networks.
        squashed: For fine-tuned networks: the side of the squashed photo, and which part of it is shown.
    """

    graph: Any
    views: tuple[Preprocessing, ...] = ()
    squashed: Mapping[str, Any] | None = None


class GraphBuilder:
    """Adds nodes to a graph, each with a name of its own."""

    def __init__(self, graph: Any, prefix: str = "fieldmark") -> None:
        onnx: Any = require("onnx", "Exporting a model")
        self._make, self._arrays, self._types = onnx.helper, onnx.numpy_helper, onnx.TensorProto
        self.graph, self._prefix, self._nodes, self._number = graph, prefix, list[Any](), 0

    def constant(self, values: Any, dtype: Any = np.float32) -> str:
        """An array that the graph holds."""
        name = self._name("kept")
        array = np.ascontiguousarray(np.asarray(values, dtype=dtype))
        self.graph.initializer.append(self._arrays.from_array(array, name))
        return name

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """A node with one output, whose name is returned."""
        return self.several(operator, inputs, 1, **attributes)[0]

    def several(self, operator: str, inputs: tuple[str, ...], outputs: int, **attributes: Any) -> list[str]:
        """A node with several outputs."""
        names = [self._name(operator.lower()) for _ in range(outputs)]
        self._nodes.append(self._make.make_node(operator, list(inputs), names, **attributes))
        return names

    def cast(self, at: str, kind: str) -> str:
        """The same numbers in another kind: FLOAT, FLOAT16, DOUBLE, ..."""
        return self.add("Cast", at, to=getattr(self._types, kind))

    def total(self, at: str) -> str:
        """The sum of each row, as one column."""
        return self.add("ReduceSum", at, self.constant([1], np.int64), keepdims=1)

    def unit(self, at: str) -> str:
        """Rows scaled to length one."""
        length = self.add("Sqrt", self.total(self.add("Mul", at, at)))
        return self.add("Div", at, self.add("Max", length, self.constant(TINY)))

    def called(self, at: str, name: str) -> None:
        """Names an output of the graph."""
        self._nodes.append(self._make.make_node("Identity", [at], [name]))
        self.graph.output.append(self._make.make_tensor_value_info(name, self._types.FLOAT, ["rows", "columns"]))

    def take_nodes(self) -> list[Any]:
        """The nodes added so far, which are then forgotten."""
        taken, self._nodes = self._nodes, []
        return taken

    def _name(self, what: str) -> str:
        self._number += 1
        return f"{self._prefix}.{what}.{self._number}"


def answering_network(model: Model) -> AnsweringNetwork:
    """A model as one graph.

    Raises:
        MisuseError: When it cannot be written so; the sentence says why.
    """
    if model.medium != PHOTO:
        raise MisuseError(f"The model {model.name!r} answers {model.medium.plural}; a field guide is for photos.")
    if model.fitted.method.exportable:
        return _of_trained_network(model)
    source = model.supply.main
    if source is None or len(model.features) != 1 or model.encoders:
        raise _unfit(model, "it reads other things than photos alone")
    refuse_settings(model, source)
    head = head_of(model.fitted.method)
    if head is None:
        raise _unfit(model, f"its method is none of {', '.join(sorted(HEADS_NAMED))}, nor a fine-tuned network")
    proto = _backbone_graph(source.backbone)
    views = tuple(views_of(source.backbone.preprocessing, source.settings.views))
    build = GraphBuilder(proto.graph)
    features = _features(build, source)
    head(build, features, model.fitted.method, model.fitted.arrays)
    proto.graph.node.extend(build.take_nodes())
    _begin_with_bytes(proto, views[0])
    _drop_unused(proto.graph)
    return AnsweringNetwork(proto, views)


def refuse_settings(model: Model, source: FeatureSource) -> None:
    """Refuses features whose photos are prepared in a way that is no arithmetic on the photo."""
    crop = source.crop[0]
    if crop not in ("", "none"):
        raise _unfit(model, f"its photos are cropped by a network of its own (crop={crop}): fit it with crop=none")
    if model.fitted.method.sees != "item":
        raise _unfit(model, f"it looks at other photos than the one asked about ({model.fitted.method.sees})")


def _unfit(model: Model, because: str) -> MisuseError:
    return MisuseError(f"The model {model.name!r} cannot be exported as an app: {because}.")


# --- networks -------------------------------------------------------------------------------------------------------


def _backbone_graph(backbone: Any) -> Any:
    """The network as ONNX: `pixels` in, `features` out and nothing else."""
    onnx: Any = require("onnx", "Exporting a model")
    if isinstance(backbone, PackagedBackbone):
        proto = onnx.load_from_string(backbone.network.onnx_graph())
    else:
        proto = _traced(backbone)
    del proto.graph.output[:]
    return proto


def _traced(backbone: Any) -> Any:
    torch: Any = require("torch", "Exporting a network")
    if hasattr(backbone.network, "encode_image"):
        raise MisuseError(f"The backbone {backbone.name} is a network of open_clip, which is not exported as an app.")

    class PooledNetwork(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.network = backbone.network.cpu().float()

        def forward(self, pixels: Any) -> Any:
            return self.network.forward_head(self.network.forward_features(pixels), pre_logits=True)

    side = backbone.preprocessing.size_px
    return traced(PooledNetwork().eval(), {"pixels": torch.rand(2, 3, side, side)}, "features")


def _of_trained_network(model: Model) -> AnsweringNetwork:
    """A fine-tuned network, which is shown a box of the squashed photo."""
    method: Any = model.fitted.method
    if getattr(method, "crop", "") not in ("", "none"):
        raise _unfit(model, f"its photos are cropped by a network of its own (crop={method.crop}): fit it without")
    torch: Any = require("torch", "Exporting a network")
    from fieldmark.training.boxes import resample
    from fieldmark.training.photos import pack_side

    reading = method.reading
    crops, size = reading.crops, reading.size
    whole, transform = whole_network(model)

    class ShownNetwork(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.whole = whole

        def forward(self, squares: Any, boxes: Any) -> Any:
            return self.whole(resample(squares.permute(0, 3, 1, 2), boxes, transform.size_px) / 255)

    side = pack_side(size, crops.eval_crop, crops.eval_share)
    squares = torch.randint(0, 256, (2, side, side, 3), dtype=torch.uint8)
    boxes = torch.tensor([[0.0, 0.0, 1.0, 1.0]]).repeat(2, 1)
    proto = traced(ShownNetwork().eval(), {"squares": squares, "boxes": boxes}, "scores")
    shown = {"side_px": side, "eval_crop": crops.eval_crop, "eval_share": crops.eval_share}
    return AnsweringNetwork(proto, squashed=shown)


def _begin_with_bytes(proto: Any, how: Preprocessing) -> None:
    """Puts the normalization before the network."""
    build = GraphBuilder(proto.graph, "fieldmark.before")
    shares = build.add("Div", build.cast("squares", "FLOAT"), build.constant(255))
    normal = build.add("Div", build.add("Sub", shares, build.constant(how.mean)), build.constant(how.std))
    build.add("Transpose", normal, perm=[0, 3, 1, 2])
    nodes = build.take_nodes()
    nodes[-1].output[0] = "pixels"
    network = list(proto.graph.node)
    del proto.graph.node[:], proto.graph.input[:]
    proto.graph.node.extend([*nodes, *network])
    onnx: Any = require("onnx", "Exporting a model")
    shape = ["views", how.size_px, how.size_px, 3]
    proto.graph.input.append(onnx.helper.make_tensor_value_info("squares", onnx.TensorProto.UINT8, shape))


def _drop_unused(graph: Any) -> None:
    """Leaves out what no output needs: the classifier that a backbone was trained with."""
    needed = {output.name for output in graph.output}
    kept = []
    for node in reversed(graph.node):
        if needed & set(node.output):
            kept.append(node)
            needed |= set(node.input)
    arrays = [array for array in graph.initializer if array.name in needed]
    del graph.node[:], graph.initializer[:], graph.value_info[:]
    graph.node.extend(reversed(kept))
    graph.initializer.extend(arrays)


def _features(build: GraphBuilder, source: FeatureSource) -> str:
    """The features of a photo as methods see them: in half precision, the mean over views, quantized where asked."""
    at = build.cast(build.cast("features", "FLOAT16"), "FLOAT")
    if source.settings.views != "one":
        number = build.constant(len(views_of(source.backbone.preprocessing, source.settings.views)))
        summed = build.add("ReduceSum", at, build.constant([0], np.int64), keepdims=1)
        at = build.add("Div", summed, number)
    if source.settings.embeddings == "quantized":
        shifted = build.add("Mul", build.add("Add", build.unit(at), build.constant(1)), build.constant(127.5))
        stored = build.add("Floor", build.add("Clip", shifted, build.constant(0), build.constant(255)))
        shares = build.add("Mul", build.add("Div", stored, build.constant(255)), build.constant(2))
        at = build.add("Sub", shares, build.constant(1))
    build.called(at, "embedding")
    return at


# --- methods --------------------------------------------------------------------------------------------------------

Scores = Callable[[GraphBuilder, str, Any, Arrays], str]
Head = Callable[[GraphBuilder, str, Any, Arrays], None]


def _linear(build: GraphBuilder, at: str, method: Linear, arrays: Arrays) -> str:
    if method.several or method.inputs:
        raise MisuseError("A linear model of several labels or inputs cannot be exported as an app.")
    weights = arrays["weights"]
    normal = build.add("Div", build.add("Sub", at, build.constant(arrays["mean"])), build.constant(arrays["spread"]))
    return _affine(build, normal, weights[:-1], weights[-1])


def _affine(build: GraphBuilder, at: str, weights: NDArray[Any], bias: NDArray[Any]) -> str:
    return build.add("Add", build.add("MatMul", at, build.constant(weights)), build.constant(bias))


def _discriminant(build: GraphBuilder, at: str, method: Discriminant, arrays: Arrays) -> str:
    logits = _affine(build, build.unit(at), arrays["weights"].T, arrays["bias"])
    lowest = build.add("Neg", build.add("ReduceMax", build.add("Neg", logits), keepdims=1))
    return build.add("Where", build.constant(arrays["learned"], np.bool_), logits, _less(build, lowest))


def _less(build: GraphBuilder, at: str) -> str:
    return build.add("Sub", at, build.constant(1))


def _prototypes(build: GraphBuilder, at: str, method: Prototypes, arrays: Arrays) -> str:
    if (power := power_of(arrays)) != 1:
        raised = build.add("Pow", build.add("Abs", at), build.constant(power))
        at = build.add("Mul", build.add("Sign", at), raised)
    logits = _affine(build, build.unit(at), arrays["weights"].T, arrays["bias"])
    lowest = _less(build, build.add("Neg", build.add("ReduceMax", build.add("Neg", logits), keepdims=1)))
    # Labels without photos are led to a last column that holds what is below the lowest.
    place = np.full(arrays["n_labels"].item(), len(arrays["present"]))
    place[arrays["present"]] = np.arange(len(arrays["present"]))
    return build.add("Gather", build.add("Concat", logits, lowest, axis=1), build.constant(place, np.int64), axis=1)


def _ridge(build: GraphBuilder, at: str, method: Ridge, arrays: Arrays) -> str:
    return _affine(
        build, build.add("Sub", build.unit(at), build.constant(arrays["mean"])), arrays["weights"], arrays["bias"]
    )


def _centroid(build: GraphBuilder, at: str, method: Centroid, arrays: Arrays) -> str:
    cosines = build.add("MatMul", build.unit(at), build.constant(arrays["centroids"].T))
    lowest = build.constant(-1 if method.absent == "never" else 0)
    return build.add("Where", build.constant(arrays["learned"], np.bool_), cosines, lowest)


def _neighbors(build: GraphBuilder, at: str, method: NearestNeighbors, arrays: Arrays) -> str:
    if method.vote != "weighted":
        raise MisuseError("knn with vote=majority cannot be exported as an app: fit it with vote=weighted.")
    asked = build.unit(at) if method.lengths == "unit" else at
    likeness = build.add("MatMul", asked, build.constant(arrays["features"].T))
    k = min(method.k, len(arrays["labels"]))
    values, items = build.several("TopK", (likeness, build.constant([k], np.int64)), 2, axis=1)
    apart = build.add("Sub", values, build.add("ReduceMax", values, keepdims=1))
    weight = build.add("Exp", build.add("Div", apart, build.constant(method.temperature)))
    weight = build.add("Div", weight, build.total(weight))
    n_labels = arrays["n_labels"].item()
    labels = build.add("Gather", build.constant(arrays["labels"], np.int64), items)
    marks = build.add("OneHot", labels, build.constant(n_labels, np.int64), build.constant([0, 1]), axis=1)
    weighed = build.add("Mul", marks, build.add("Unsqueeze", weight, build.constant([1], np.int64)))
    votes = build.add("ReduceSum", weighed, build.constant([2], np.int64), keepdims=0)
    shared = build.add("Mul", votes, build.constant(1 - method.floor))
    return build.add("Log", build.add("Add", shared, build.constant(method.floor / n_labels)))


CLASSIFIERS: Mapping[type[Method], Scores] = {
    Linear: _linear,
    Discriminant: _discriminant,
    Prototypes: _prototypes,
    Ridge: _ridge,
    Centroid: _centroid,
    NearestNeighbors: _neighbors,
}
HEADS_NAMED = ("linear", "lda", "prototypes", "ridge", "centroid", "knn", "openset")


def head_of(method: Method) -> Head | None:
    """What puts a method on top of features; None for methods that are not written as graphs."""
    if isinstance(method, OpenSet):
        return _open_set
    inner = method.head() if isinstance(method, Headed) else method
    scores = CLASSIFIERS.get(type(inner))
    if scores is None or (isinstance(method, Headed) and type(method) is not Headed):
        return None

    def head(build: GraphBuilder, at: str, method: Any, arrays: Arrays) -> None:
        build.called(scores(build, at, inner, arrays), "scores")

    return head


def _open_set(build: GraphBuilder, at: str, method: OpenSet, arrays: Arrays) -> None:
    classifier = method.head()
    scores = CLASSIFIERS.get(type(classifier))
    if scores is None:
        raise MisuseError(f"openset around {method.classifier} cannot be exported as an app.")
    logits = scores(build, at, classifier, _under(HEAD, arrays))
    build.called(logits, "scores")
    plain = build.cast(logits, "DOUBLE")
    if classifier.scale == "log_probability":
        plain = build.add("Sub", plain, build.add("ReduceMean", plain, keepdims=1))
    plain = build.add("Div", plain, build.constant(arrays["temperature"], np.float64))
    strange = _Strangeness(build, plain, build.cast(at, "DOUBLE"), _under(LEARNED, arrays))
    if method.chosen in (AVERAGE, COMBINED):
        combination = Combination.from_arrays(arrays, method.chosen)
        together = build.constant([[0]], np.float64)
        for name, center, spread, weight in zip(
            combination.names, combination.center, combination.spread, combination.weights, strict=True
        ):
            apart = build.add("Sub", strange.score(name), build.constant(center, np.float64))
            together = build.add("Add", together, build.add("Mul", apart, build.constant(weight / spread, np.float64)))
    else:
        together = strange.score(method.chosen)
    build.called(build.cast(together, "FLOAT"), "unknown")


def _under(prefix: str, arrays: Arrays) -> Arrays:
    return {name.removeprefix(prefix): values for name, values in arrays.items() if name.startswith(prefix)}


@dataclass(frozen=True)
class _Strangeness:
    """The scores of `steps.novelty` as nodes, in double precision."""

    build: GraphBuilder
    logits: str
    features: str
    learned: Arrays

    def score(self, name: str) -> str:
        """One column with a score by its name."""
        assert name in SCORES
        made: str = getattr(self, "_" + name.replace("-", "_"))()
        return made

    def _double(self, name: str) -> str:
        return self.build.cast(self.build.constant(self.learned[name]), "DOUBLE")

    def _highest(self, at: str) -> str:
        return self.build.add("ReduceMax", at, keepdims=1)

    def _max_logit(self) -> str:
        return self.build.add("Neg", self._highest(self.logits))

    def _energy(self) -> str:
        highest = self._highest(self.logits)
        shares = self.build.add("Exp", self.build.add("Sub", self.logits, highest))
        return self.build.add("Neg", self.build.add("Add", highest, self.build.add("Log", self.build.total(shares))))

    def _max_softmax(self) -> str:
        apart = self.build.add("Exp", self.build.add("Sub", self.logits, self._highest(self.logits)))
        one = self.build.constant(1, np.float64)
        beside = self.build.add("Sub", self.build.total(apart), one)
        return self.build.add("Div", beside, self.build.add("Add", beside, one))

    def _entropy(self) -> str:
        logs = self.build.add("Add", self.logits, self._energy())
        bounded = self.build.add("Max", logs, self.build.constant(-700, np.float64))
        return self.build.add("Neg", self.build.total(self.build.add("Mul", self.build.add("Exp", logs), bounded)))

    def _nearest_mean(self) -> str:
        return self.build.add("Sqrt", self._least_square(self.features, self._double("means")))

    def _mahalanobis(self) -> str:
        return self._least_square(self._whitened("white", self.features, np.float64), self._double("white_means"))

    def _relative_mahalanobis(self) -> str:
        rows = self.build.unit(self.build.cast(self.features, "FLOAT"))
        distances = []
        for space, means in (("round", "round_means"), ("overall", "overall_mean")):
            white = self._whitened(space, rows, np.float32)
            distances.append(self._least_square(self.build.cast(white, "DOUBLE"), self._double(means)))
        return self.build.add("Sub", *distances)

    def _round_neighbor(self) -> str:
        build, rows = self.build, self.build.unit(self.build.cast(self.features, "FLOAT"))
        made_round = build.add(
            "Sub", self._whitened("round", rows, np.float32), build.constant(self.learned["round_center"])
        )
        return self._nearest_stored(made_round, self.learned["round_stored"], 1)

    def _whitened(self, name: str, rows: str, dtype: Any) -> str:
        """Rows under a map of `novelty.Whitening`."""
        build, white = self.build, Whitening.of(self.learned, name)
        along = build.add("MatMul", rows, build.constant(white.axes, dtype))
        along = build.add("Mul", along, build.constant(white.gains, dtype))
        if not white.rest:
            return along
        back = build.add("MatMul", along, build.constant(white.axes.T, dtype))
        return build.add("Add", build.add("Mul", rows, build.constant(white.rest, dtype)), back)

    def _least_square(self, at: str, points: str) -> str:
        apart = self.build.add("Sub", at, points)
        squares = self.build.add("Transpose", self._squares(apart), perm=[1, 0])
        return self.build.add("Neg", self._highest(self.build.add("Neg", squares)))

    def _knn(self) -> str:
        asked = self.build.cast(self.features, "FLOAT")
        return self._nearest_stored(asked, self.learned["stored"], self.learned["k"].item())

    def _nearest_stored(self, rows: str, kept: NDArray[np.float16], k: int) -> str:
        build, stored = self.build, kept.astype(np.float32)
        stored /= np.maximum(np.linalg.norm(stored, axis=1, keepdims=True), TINY)
        asked, k = build.unit(rows), min(k, len(stored))
        cosine = build.add("MatMul", asked, build.constant(stored.T))
        values, _ = build.several("TopK", (cosine, build.constant([k], np.int64)), 2, axis=1)
        lowest = build.add("Neg", self._highest(build.add("Neg", values)))
        squares = build.add("Sub", build.constant(2), build.add("Mul", lowest, build.constant(2)))
        return build.cast(build.add("Sqrt", build.add("Max", squares, build.constant(0))), "DOUBLE")

    def _residual(self) -> str:
        build = self.build
        apart = build.add("Sub", self.features, self._double("origin"))
        if "left" in self.learned:  # models of before keep the other axes
            return build.add("Sqrt", self._squares(build.add("MatMul", apart, self._double("left"))))
        along = self._squares(build.add("MatMul", apart, self._double("principal")))
        outside = build.add("Sub", self._squares(apart), along)
        return build.add("Sqrt", build.add("Max", outside, build.constant(0, np.float64)))

    def _squares(self, rows: str) -> str:
        """The sum of squares of each row."""
        return self.build.total(self.build.add("Mul", rows, rows))

    def _vim(self) -> str:
        alpha = self.build.constant(self.learned["alpha"], np.float64)
        return self.build.add("Add", self.build.add("Mul", self._residual(), alpha), self._energy())
