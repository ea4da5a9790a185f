"""Networks as ONNX files, checked against the network they came from."""

from __future__ import annotations

import json
import tempfile
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fieldmark.errors import MisuseError
from fieldmark.models import Model
from fieldmark.registry import require
from fieldmark.steps import step_to_data
from fieldmark.storage.files import appearing_file

# By how much an output may differ, relative to the largest: another order of additions, not another network.
TOLERANCE = 1e-3


@dataclass(frozen=True)
class Exported:
    """What was written.

    Args:
        labels: How many outputs the network has.
        size_px: The side of the photos it takes.
        difference: The largest difference to torch on random photos, relative to the largest output.
    """

    labels: int
    size_px: int
    difference: float


def export_onnx(model: Model, out: Path) -> Exported:
    """Writes the network of a model; batches may have any length.

    The input `photos` is batch x 3 x height x width in single precision, values 0 to 1: the normalization is part of
    the file. The output `logits` has one column per label; the metadata of the file name them, with the steps that come
    after, and how photos are to be cropped before, where the model was trained on crops.

    Raises:
        MisuseError: When the model has no network of its own.
    """
    if not model.fitted.method.exportable:
        raise MisuseError(
            f"{model.name} is a head on frozen features and has no network of its own; finetune and published have."
        )
    torch: Any = require("torch", "Exporting a network")
    runtime: Any = require("onnxruntime", "Checking an exported network")
    onnx: Any = require("onnx", "Exporting a network")
    wrapped, transform = whole_network(model)
    stored = traced(wrapped, {"photos": torch.rand(2, 3, transform.size_px, transform.size_px)}, "logits")
    _describe(onnx, stored, model)
    data = stored.SerializeToString()
    difference = _difference(torch, runtime, wrapped, data, transform.size_px)
    if not difference < TOLERANCE:
        raise RuntimeError(f"the exported network differs from torch by {difference:.2g}")
    with appearing_file(out) as partial:
        partial.write_bytes(data)
    return Exported(len(model.labels), transform.size_px, difference)


def whole_network(model: Model) -> tuple[Any, Any]:
    """The network of a model with normalization and the order of its labels, and how photos come to it."""
    torch: Any = require("torch", "Exporting a network")
    method: Any = model.fitted.method
    network = method.load(model.fitted.arrays).cpu()
    transform = method.transform(network)
    return _wrapped(torch, network, transform, model.fitted.arrays.get("label_order")).eval(), transform


def traced(module: Any, examples: Mapping[str, Any], output: str) -> Any:
    """A module of torch as ONNX, with named inputs of any number of rows and one output."""
    torch: Any = require("torch", "Exporting a network")
    require("onnxscript", "Exporting a network")
    onnx: Any = require("onnx", "Exporting a network")
    batch = torch.export.Dim("batch")
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter warns about its own internals
        written = Path(folder, "network.onnx")
        torch.onnx.export(
            module,
            tuple(examples.values()),
            written,
            input_names=list(examples),
            output_names=[output],
            dynamic_shapes=tuple({0: batch} for _ in examples),
            dynamo=True,
            external_data=False,
            verbose=False,
        )
        return onnx.load(written)


def _wrapped(torch: Any, network: Any, transform: Any, order: Any) -> Any:
    """The network with its normalization before it and its outputs in the order of the labels."""

    class Whole(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.network = network
            self.register_buffer("mean", torch.tensor(transform.mean).view(1, 3, 1, 1))
            self.register_buffer("std", torch.tensor(transform.std).view(1, 3, 1, 1))
            self.register_buffer("order", None if order is None else torch.from_numpy(np.array(order)))

        def forward(self, photos: Any) -> Any:
            logits = self.network((photos - self.mean) / self.std)
            return logits if self.order is None else logits[:, self.order]

    return Whole()


def _describe(onnx: Any, stored: Any, model: Model) -> None:
    facts = {
        "labels": list(model.labels.names),
        "steps": [step_to_data(step) for step in model.steps],
        "license": model.license,
        "trained": model.trained,
    }
    if crop := getattr(model.fitted.method, "crop", ""):
        facts["crop"] = {"source": crop, "margin": model.fitted.method.crop_margin}  # type: ignore[attr-defined]
    onnx.helper.set_model_props(stored, {key: json.dumps(value) for key, value in facts.items()})


def _difference(torch: Any, runtime: Any, wrapped: Any, data: bytes, size_px: int) -> float:
    """The largest difference between both on three photos, a batch of another length than the one exported with."""
    photos = np.random.default_rng(0).random((3, 3, size_px, size_px), dtype=np.float32)
    session = runtime.InferenceSession(data, providers=["CPUExecutionProvider"])
    logits = session.run(["logits"], {"photos": photos})[0]
    with torch.inference_mode():
        expected = wrapped(torch.from_numpy(photos)).numpy()
    return float(np.abs(logits - expected).max() / max(np.abs(expected).max(), 1e-12))
