"""Extraction on a CPU from files to the store, beside the bare engine: milliseconds of processors per photo.

2,000 real photos, enlarged to 500 px, by EfficientNet-Lite0 at 224 px on one thread per library. Each turn runs, in a
process of its own: extraction by the engine that was remembered, which starts the engine and compiles the resampler and
ends with the last block of the store, and the same with the start of Python and all imports; and OpenVINO and ONNX
Runtime themselves on squares that lie in memory, without their start. Decoding and resizing alone is measured beside
the bare engines. The least of all turns counts.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from studies.perf.camera_photos import read_photo, write_camera_photos
from studies.perf.timing import fastest

PHOTOS, LONG_PX, QUALITY, TURNS = 2000, 500, 80, 2
SOURCES = ("fungi_genera", "snakes_philippines", "plants_sheets_and_field")
BARE, AT_ONCE, ROUNDS = 512, 16, 2
ALLOWED = 8.5 / 6.6


def run() -> dict[str, Any]:
    """Milliseconds per photo of extraction, of its parts and of the bare engines, and how far features differ."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        contents = write_camera_photos(folder, PHOTOS, LONG_PX, quality=QUALITY, sources=SOURCES)
        return {**measured(folder), "contents": contents}


def measured(folder: Path) -> dict[str, Any]:
    """The same for a folder of photos that is there."""
    paths = sorted((folder / "photo").iterdir())
    kib = sum(path.stat().st_size for path in paths) / len(paths) / 1024
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "FIELDMARK_CACHE": cache}
        environment |= {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "POLARS_MAX")}

        def child(what: str) -> dict[str, Any]:
            command = [sys.executable, "-m", "studies.perf.extraction_cpu", what, str(folder)]
            done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
            found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
            print(what, found, flush=True)
            return found

        first = child("extract")
        turns = [{**child("extract"), **child("second-order"), **child("alone")} for _ in range(TURNS)]
        agreement = child("agreement")
    least = {what: min(turn[what] for turn in turns) for what in turns[0] if what.endswith("_ms")}
    bare = least["openvino_ms"]
    return {
        "photos": len(paths),
        "kib_per_photo": round(kib),
        "engine": turns[-1]["engine"],
        "cpu_ms": {name: round(value, 2) for name, value in {"first_ms": first["process_ms"], **least}.items()},
        "over_bare_openvino": {
            name: round(value / bare, 2)
            for name, value in least.items()
            if name.endswith(("extraction_ms", "process_ms", "later_half_ms"))
        },
        "allowed": round(ALLOWED, 2),
        "relative_difference": agreement,
    }


def second_order(folder: Path) -> dict[str, Any]:
    """The same of second-order features, without what their axes take."""
    from fieldmark.features.photos import decode_square
    from fieldmark.features.second_order import PHOTOS as PHOTOS_OF_AXES
    from fieldmark.features.second_order import axes_of

    backbone = _backbone()
    paths = sorted((folder / "photo").iterdir())[:PHOTOS_OF_AXES]
    squares = [decode_square(path.read_bytes(), backbone.preprocessing) for path in paths]
    blocks = (squares[start : start + AT_ONCE] for start in range(0, len(squares), AT_ONCE))
    found = extracted(folder, axes_of(map(backbone.last_maps, blocks)))
    return {f"second_order_{name}": found[name] for name in ("extraction_ms", "later_half_ms")}


def extracted(folder: Path, axes: Any = None) -> dict[str, Any]:
    """One extraction in this process, into a store that is empty; in second order where there are axes."""
    from fieldmark.features.extraction import extract
    from fieldmark.features.second_order import SECOND_ORDER
    from fieldmark.features.settings import FeatureSettings
    from fieldmark.features.store import FeatureStore
    from fieldmark.models.supply.sources import load_backbone

    class TimedStore(FeatureStore):
        """A store that knows how much time processors had taken when so many photos were in it."""

        def __init__(self, root: Path, digest: str) -> None:
            super().__init__(root, digest)
            self.times = [(0.0, 0)]

        def add(self, keys: Sequence[bytes], outputs: Any) -> None:
            super().add(keys, outputs)
            self.times.append((time.process_time(), self.times[-1][1] + len(keys)))

    paths = [str(path) for path in sorted((folder / "photo").iterdir())]
    imported = time.process_time()
    backbone = load_backbone(FeatureSettings(output="features" if axes is None else SECOND_ORDER), axes)
    with tempfile.TemporaryDirectory() as name:
        store = TimedStore(Path(name), backbone.digest)
        extract(paths, read_photo, backbone, store)
    times = store.times
    half, photos = next((s, n) for s, n in times if n >= len(paths) / 2)
    ended = time.process_time()
    return {
        "extraction_ms": 1000 * (ended - imported) / len(paths),
        "process_ms": 1000 * ended / len(paths),
        "later_half_ms": 1000 * (times[-1][0] - half) / (len(paths) - photos),
        "engine": backbone.network.engine(backbone.preprocessing.size_px).name,
    }


def alone(folder: Path) -> dict[str, float]:
    """Bare engines on squares that lie in memory, and decoding without any of them."""
    from fieldmark.features.efficientnet_lite import onnx_graph
    from fieldmark.features.photos import decode_square
    from fieldmark.features.resampling import resampler_for_many

    backbone = _backbone()
    contents = [path.read_bytes() for path in sorted((folder / "photo").iterdir())[:BARE]]
    resampler_for_many.compile_now()
    squares = np.stack([decode_square(data, backbone.preprocessing) for data in contents])
    graph = onnx_graph(backbone.network.variant, backbone.network.tensors)
    jobs = {
        "openvino_ms": _each(_bare_openvino(graph), squares),
        "onnxruntime_ms": _each(_bare_onnxruntime(graph), squares),
        "decoding_ms": lambda: [decode_square(data, backbone.preprocessing) for data in contents],
    }
    seconds = fastest(jobs, rounds=ROUNDS, clock=time.process_time)
    return {name: 1000 * each / BARE for name, each in seconds.items()}


def _each(engine: Callable[[Any], object], squares: Any) -> Callable[[], object]:
    return lambda: [engine(squares[start : start + AT_ONCE]) for start in range(0, len(squares), AT_ONCE)]


def _bare_openvino(graph: bytes) -> Callable[[Any], object]:
    """OpenVINO as its documentation shows it: bytes in, normalized in its graph, single precision."""
    openvino, preprocess = (import_module(name) for name in ("openvino", "openvino.preprocess"))
    core = openvino.Core()
    steps = preprocess.PrePostProcessor(core.read_model(graph))
    steps.input().tensor().set_element_type(openvino.Type.u8).set_layout(openvino.Layout("NHWC"))
    steps.input().model().set_layout(openvino.Layout("NCHW"))
    steps.input().preprocess().convert_element_type(openvino.Type.f32).mean(127.5).scale(127.5)
    model = steps.build()
    model.reshape([AT_ONCE, 224, 224, 3])
    compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": "1"})
    look: Callable[[Any], object] = compiled
    return look


def _bare_onnxruntime(graph: bytes) -> Callable[[Any], object]:
    onnxruntime = import_module("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])

    def look(squares: Any) -> object:
        pixels = (squares.astype(np.float32) / np.float32(127.5) - 1).transpose(0, 3, 1, 2)
        return session.run(None, {"pixels": np.ascontiguousarray(pixels)})

    return look


def agreement(folder: Path) -> dict[str, float]:
    """The largest difference of features and logits between engines, of the largest value of the reference."""
    import timm

    from fieldmark.features.backbones import Backbone, engine_of
    from fieldmark.features.engines import relative_difference
    from fieldmark.features.photos import decode_square

    backbone = _backbone()
    contents = [path.read_bytes() for path in sorted((folder / "photo").iterdir())[:128]]
    squares = np.stack([decode_square(data, backbone.preprocessing) for data in contents])
    makers = backbone.network.engine(224).makers
    found = {"efficientnet_lite0": relative_difference(makers["openvino"]()(squares), makers["onnxruntime"]()(squares))}
    for name in ("resnet18", "vit_tiny_patch16_224"):
        network = timm.create_model(name, pretrained=False).eval().requires_grad_(False)
        engine = engine_of(Backbone(name, "random", network, backbone.preprocessing))
        assert engine is not None
        found[f"timm {name}"] = relative_difference(
            engine.makers["openvino"]()(squares), engine.makers["torch"]()(squares)
        )
    return found


def _backbone() -> Any:
    from fieldmark.features.settings import FeatureSettings
    from fieldmark.models.supply.sources import load_backbone

    return load_backbone(FeatureSettings())


def main() -> None:
    """One part in this process: `python -m studies.perf.extraction_cpu extract|second-order|alone|agreement FOLDER`."""
    part = {"extract": extracted, "second-order": second_order, "alone": alone, "agreement": agreement}[sys.argv[1]]
    print(json.dumps(part(Path(sys.argv[2]))))


if __name__ == "__main__":
    main()
