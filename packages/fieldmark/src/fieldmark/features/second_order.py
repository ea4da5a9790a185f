"""Second-order pooling: which channels of the last maps of a network go together, beside its plain features.

After Lin, RoyChowdhury and Maji, "Bilinear CNN models for fine-grained visual recognition" (2015), with the matrix root
of Li and others, "Towards faster training of global covariance pooling networks by iterative matrix square root
normalization" (2018):

1. the channels are turned to the principal axes of photos of train, each divided by the fourth root of its variance;
2. the products of each two axes are averaged over the positions of a photo;
3. of the matrix of these the root is taken, by Newton and Schulz, which spreads what few strong axes would hold;
4. its upper triangle, off the diagonal times the root of two, is brought to unit length;
5. so are the plain features, which stand behind it.

The axes are those of the release that a model is fitted to; no labels are needed for them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fieldmark.features.embeddings import unit_rows

SECOND_ORDER: Literal["second-order"] = "second-order"
Axes = NDArray[np.float32]

# Raised whenever the same axes would give other features.
VERSION = 1
# So many axes give 2,080 features beside the plain ones. Chosen by cross-validation on train of six real sets, as was
# the fourth root.
AXES = 64
# What axes vary by less than this share of the first is noise.
LEAST_VARIANCE = 1e-6
# So many photos of train are enough for the axes.
PHOTOS = 256
TURNS = 5


def axes_of(maps: Iterable[NDArray[np.float32]]) -> Axes:
    """The axes of channels, one column each.

    Args:
        maps: Last maps of a network, photos x channels x positions.
    """
    count, total, products = 0, np.zeros(1), np.zeros((1, 1))
    for block in maps:
        positions = block.transpose(0, 2, 1).reshape(-1, block.shape[1]).astype(np.float64)
        count += len(positions)
        total, products = total + positions.sum(axis=0), products + positions.T @ positions
    mean = total / count
    variances, directions = np.linalg.eigh(products / count - np.outer(mean, mean))
    variances, directions = variances[::-1][:AXES], directions[:, ::-1][:, :AXES]
    kept = variances > LEAST_VARIANCE * variances[0]
    return np.asarray(directions[:, kept] / variances[kept] ** 0.25, dtype=np.float32)


def digest_of(axes: Axes) -> str:
    """What tells features on these axes from others."""
    return f"{VERSION}-{hashlib.blake2b(np.ascontiguousarray(axes).tobytes(), digest_size=16).hexdigest()}"


def triangle(axes: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Where the upper triangle of a flattened matrix lies, and what each of its elements is multiplied by."""
    row, column = np.triu_indices(axes)
    return row * axes + column, np.where(row == column, 1, np.sqrt(2)).astype(np.float32)


def onnx_nodes(maps: str, plain: str, axes: Axes) -> tuple[list[Any], dict[str, NDArray[Any]]]:
    """Nodes that make `features` of maps and plain features, and the arrays they hold.

    Args:
        maps: The name of the maps, photos x channels x height x width.
        plain: The name of the plain features.
        axes: The axes of the channels.
    """
    import onnx

    number = axes.shape[1]
    places, factors = triangle(number)
    held: dict[str, NDArray[Any]] = {
        "pairs.axes": np.ascontiguousarray(axes.T)[:, :, None, None],
        "pairs.by_position": np.array([0, number, -1]),
        "pairs.flat": np.array([0, number**2]),
        "pairs.positions": np.array([1, 2]),
        "pairs.places": places,
        "pairs.factors": factors,
        "pairs.half": np.array(0.5, dtype=np.float32),
        "pairs.identity": 1.5 * np.eye(number, dtype=np.float32),
    }
    nodes: list[Any] = []

    def node(operator: str, *inputs: str, **attributes: Any) -> str:
        nodes.append(onnx.helper.make_node(operator, list(inputs), [f"pairs.{len(nodes)}"], **attributes))
        return f"pairs.{len(nodes) - 1}"

    turned = node("Reshape", node("Conv", maps, "pairs.axes"), "pairs.by_position")
    products = node("MatMul", turned, node("Transpose", turned, perm=[0, 2, 1]))
    size = node("ReduceSum", node("Mul", turned, turned), "pairs.positions", keepdims=1)
    root, inverse = node("Div", products, size), ""
    for _ in range(TURNS):
        product = node("MatMul", inverse, root) if inverse else root
        step = node("Sub", "pairs.identity", node("Mul", product, "pairs.half"))
        root = node("MatMul", root, step)
        inverse = node("MatMul", step, inverse) if inverse else step
    chosen = node("Gather", node("Reshape", root, "pairs.flat"), "pairs.places", axis=1)
    units = [node("LpNormalization", one, axis=1, p=2) for one in (node("Mul", chosen, "pairs.factors"), plain)]
    nodes.append(onnx.helper.make_node("Concat", units, ["features"], axis=1))
    return nodes, held


def pooled_rows(maps: NDArray[np.floating], plain: NDArray[np.floating], axes: Axes) -> NDArray[np.float32]:
    """The same of maps that are held.

    With T the turned maps, the root of T T' is T Z T' with Z that of the inverse of T' T: as a rule there are fewer
    positions than axes.

    Args:
        maps: Photos x channels x positions.
        plain: The plain features.
        axes: The axes of the channels.
    """
    turned = axes.T @ maps.astype(np.float32)
    across = turned.transpose(0, 2, 1)
    eye = np.eye(turned.shape[2], dtype=np.float32)
    size = np.square(turned).sum(axis=(1, 2), keepdims=True)
    root, inverse = across @ turned / size, eye
    for _ in range(TURNS):
        step = 1.5 * eye - 0.5 * inverse @ root
        root, inverse = root @ step, step @ inverse
    places, factors = triangle(axes.shape[1])
    products = (turned @ inverse @ across).reshape(len(turned), -1)[:, places] * factors
    return np.concatenate([unit_rows(one.astype(np.float32, copy=False)) for one in (products, plain)], axis=1)


def pooled(maps: Any, plain: Any, axes: Any, upper: tuple[Any, Any]) -> Any:
    """The same in torch.

    Args:
        maps: Photos x channels x positions.
        plain: The plain features.
        axes: The axes of the channels.
        upper: What `triangle` says of as many axes.
    """
    import torch

    turned = axes.float().T @ maps.float()
    eye = torch.eye(axes.shape[1], device=turned.device)
    root, inverse = turned @ turned.transpose(1, 2) / turned.square().sum((1, 2), keepdim=True), eye
    for _ in range(TURNS):
        step = 1.5 * eye - 0.5 * inverse @ root
        root, inverse = root @ step, step @ inverse
    products = root.flatten(1)[:, upper[0]] * upper[1].float()
    return torch.cat([torch.nn.functional.normalize(each.float(), dim=1) for each in (products, plain)], dim=1)
