"""What runs a network on a CPU: OpenVINO, ONNX Runtime or torch, whichever is quickest on this machine.

All compute in single precision and agree within `TOLERANCE`, so that their features share a store. The reference, which
is there without extra packages, runs until a process has seen a few blocks of photos. Then each engine at hand computes
one batch of those photos; the quickest of those that agree with the reference is used from then on, and remembered:

```
CACHE/engines/<network, machine, versions>.json     {"engine": "openvino", "ms_per_photo": {...}, "refused": {...}}
```

`FIELDMARK_ENGINE` names an engine to use without measuring.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldmark.errors import FieldmarkError, MisuseError
from fieldmark.registry import require
from fieldmark.storage.file_cache import cache_root
from fieldmark.storage.files import appearing_file
from fieldmark.work.blocks import all_cores

Squares = NDArray[np.uint8]
Outputs = list[NDArray[np.float32]]
# Takes photos x height x width x 3, and returns features and, where the network has a classifier, logits.
Engine = Callable[[Squares], Outputs]

ENGINES = ("openvino", "onnxruntime", "torch")
SETTING = "FIELDMARK_ENGINE"
# How far outputs may lie from those of the reference, of the largest value of the reference.
TOLERANCE = 2e-5
# Photos that are looked at together: more are no quicker, and take as much more memory.
AT_ONCE = 16
# So many photos are seen before engines are measured: for fewer, starting another engine costs more than it gives.
FEW_PHOTOS = 128
ROUNDS = 5


@dataclass
class QuickestEngine:
    """Runs a network by the engine that is quickest here.

    Args:
        fingerprint: What tells this network and the size of its photos from others.
        makers: How each engine is started, the reference first.
    """

    fingerprint: Callable[[], str]
    makers: Mapping[str, Callable[[], Engine]]
    name: str = ""
    _engine: Engine | None = None
    _seen: int = 0
    _settled: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, squares: Squares) -> Outputs:
        with self._lock:  # an engine that starts must not be started twice
            if self._engine is None:
                self._start()
            elif not self._settled and self._seen >= FEW_PHOTOS and len(squares) >= AT_ONCE:
                self._measure(squares[:AT_ONCE])
            self._seen += len(squares)
            assert self._engine is not None
            engine = self._engine
        return engine(squares)

    def settle(self, squares: Squares) -> None:
        """Chooses the engine by these photos, where none is named or remembered, so that all that follow have one."""
        with self._lock:
            if self._settled or self._remembered() in self.makers:
                return
            if self._engine is None:
                self._start()
            if not self._settled:
                self._measure(squares)

    def _start(self) -> None:
        """Takes the engine that was named or remembered, or the reference."""
        reference, named = next(iter(self.makers)), os.environ.get(SETTING, "")
        if named and named not in ENGINES:
            raise MisuseError(f"{SETTING}={named}: expected one of {', '.join(ENGINES)}.")
        self._settled = len(self.makers) == 1 or named in self.makers
        name = named if named in self.makers else reference
        if not self._settled and (remembered := self._remembered()) in self.makers:
            name, self._settled = remembered, True
        try:
            self._engine, self.name = self.makers[name](), name
        except Exception:  # an engine that no longer starts, in as many ways as there are engines
            if name == reference or named:
                raise
            self._engine, self.name, self._settled = self.makers[reference](), reference, True

    def _measure(self, squares: Squares) -> None:
        """Runs one batch by each engine, and keeps the quickest that agrees with the one at work."""
        self._settled = True
        assert self._engine is not None
        engines, refused = {self.name: self._engine}, dict[str, str]()
        expected = self._engine(squares)
        for name, make in self.makers.items():
            if name in engines:
                continue
            try:
                engine = make()
                difference = relative_difference(engine(squares), expected)
            except Exception as error:  # a network that an engine cannot run, or an engine that this machine cannot
                refused[name] = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
                continue
            if difference <= TOLERANCE:
                engines[name] = engine
            else:
                refused[name] = f"differs by {difference:.1e}"
        seconds = fastest(engines, squares)
        self.name = min(seconds, key=seconds.__getitem__)
        self._engine = engines[self.name]
        self._remember({name: round(1000 * each / len(squares), 3) for name, each in seconds.items()}, refused)

    def _remembered(self) -> str:
        try:
            return str(json.loads(self._file.read_text(encoding="utf-8"))["engine"])
        except (OSError, ValueError, KeyError, TypeError):
            return ""

    def _remember(self, ms_per_photo: Mapping[str, float], refused: Mapping[str, str]) -> None:
        record = {"engine": self.name, "ms_per_photo": ms_per_photo, "refused": refused, **_machine()}
        with contextlib.suppress(OSError, FieldmarkError), appearing_file(self._file) as partial:  # measured again
            partial.write_text(json.dumps(record, indent=2), encoding="utf-8")

    @property
    def _file(self) -> Path:
        text = json.dumps([self.fingerprint(), list(self.makers), _machine()])
        return cache_root() / "engines" / f"{hashlib.blake2b(text.encode(), digest_size=12).hexdigest()}.json"


def relative_difference(given: Outputs, expected: Outputs) -> float:
    """The largest difference of any output, as a share of the largest value of the expected one."""
    return max(
        float(np.abs(one - other).max() / max(float(np.abs(other).max()), np.finfo(np.float32).tiny))
        for one, other in zip(given, expected, strict=True)
    )


def fastest(engines: Mapping[str, Engine], squares: Squares) -> dict[str, float]:
    """The shortest time of each engine over rounds that alternate, so that a busy moment hits all of them."""
    seconds = dict.fromkeys(engines, float("inf"))
    for _ in range(ROUNDS):
        for name, engine in engines.items():
            started = time.perf_counter()
            engine(squares)
            seconds[name] = min(seconds[name], time.perf_counter() - started)
    return seconds


def _machine() -> dict[str, Any]:
    """What a measurement holds for."""
    return {"processor": _processor(), "threads": threads(), "versions": [_version(name) for name in ENGINES]}


def _processor() -> str:
    with contextlib.suppress(OSError), Path("/proc/cpuinfo").open(encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def threads() -> int:
    """How many threads an engine may use: OMP_NUM_THREADS, or one for each core."""
    given = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
    return int(given) if given.isdigit() and int(given) else all_cores("thread").workers


def installed(*modules: str) -> bool:
    """Whether packages are there, without importing them."""
    return all(find_spec(module) for module in modules)


def tensors_digest(tensors: dict[str, NDArray[Any]], recipe: Sequence[Any]) -> str:
    """A fingerprint of the weights of a network and of whatever else its outputs depend on."""
    hasher = hashlib.blake2b(digest_size=16)
    hasher.update(json.dumps(recipe).encode())
    for name, tensor in tensors.items():
        hasher.update(name.encode())
        hasher.update(tensor.tobytes())
    return hasher.hexdigest()


class OnnxRuntimeEngine:
    """A network written as ONNX, whose input is `pixels` (normalized, channels first), run by ONNX Runtime."""

    def __init__(self, graph: bytes, mean: Sequence[float], std: Sequence[float]) -> None:
        runtime: Any = require("onnxruntime", "A packaged backbone")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = threads()
        self._session = runtime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
        self._mean, self._std = (np.array(values, np.float32) for values in (mean, std))

    def __call__(self, squares: Squares) -> Outputs:
        parts = [self._session.run(None, {"pixels": self._normalized(part)}) for part in _parts(squares, AT_ONCE)]
        return [np.concatenate(part) for part in zip(*parts, strict=True)]

    def _normalized(self, squares: Squares) -> NDArray[np.float32]:
        normalized = (squares.astype(np.float32) / np.float32(255) - self._mean) / self._std
        return np.ascontiguousarray(normalized.transpose(0, 3, 1, 2))


class OpenVinoEngine:
    """A model of OpenVINO with one input (channels first), in single precision; photos are normalized inside it.

    A block of photos is spread over streams of one thread each, which wait for nobody; a few photos share all threads.
    """

    def __init__(self, model: Any, size_px: int, mean: Sequence[float], std: Sequence[float]) -> None:
        openvino: Any = require("openvino", "Features by OpenVINO")
        preprocess: Any = require("openvino.preprocess", "Features by OpenVINO")
        steps = preprocess.PrePostProcessor(model)
        steps.input().tensor().set_element_type(openvino.Type.u8).set_layout(openvino.Layout("NHWC"))
        steps.input().model().set_layout(openvino.Layout("NCHW"))
        scaled = steps.input().preprocess().convert_element_type(openvino.Type.f32)
        scaled.mean([255 * one for one in mean]).scale([255 * one for one in std])
        self._openvino, self._model = openvino, steps.build()
        self._model.reshape([-1, size_px, size_px, 3])
        self._queues: dict[int, Any] = {}
        self._lock = threading.Lock()  # requests hold the outputs of one call

    def __call__(self, squares: Squares) -> Outputs:
        streams = threads() if len(squares) >= AT_ONCE else 1
        at_once = max(1, min(AT_ONCE, -(-len(squares) // streams)))
        parts = list(_parts(np.ascontiguousarray(squares), at_once))
        outputs: list[Outputs] = [[]] * len(parts)

        def keep(request: Any, number: int) -> None:
            outputs[number] = [tensor.data.astype(np.float32, copy=True) for tensor in request.output_tensors]

        with self._lock:
            queue = self._queue(streams)
            queue.set_callback(keep)
            for number, part in enumerate(parts):
                queue.start_async({0: part}, number, share_inputs=True)
            queue.wait_all()
        return [np.concatenate(part) for part in zip(*outputs, strict=True)]

    def _queue(self, streams: int) -> Any:
        if streams not in self._queues:
            settings = {
                "INFERENCE_PRECISION_HINT": "f32",
                "NUM_STREAMS": str(streams),
                "INFERENCE_NUM_THREADS": str(threads()),
                "ENABLE_CPU_PINNING": "NO",  # beside threads that decode, and other processes
            }
            compiled = self._openvino.Core().compile_model(self._model, "CPU", settings)
            self._queues[streams] = self._openvino.AsyncInferQueue(compiled, streams)
        return self._queues[streams]


def _parts(squares: Squares, at_once: int) -> Iterator[Squares]:
    return (squares[start : start + at_once] for start in range(0, len(squares), at_once))


def openvino_from_onnx(graph: bytes, size_px: int, mean: Sequence[float], std: Sequence[float]) -> OpenVinoEngine:
    """A network written as ONNX, run by OpenVINO."""
    openvino: Any = require("openvino", "Features by OpenVINO")
    return OpenVinoEngine(openvino.Core().read_model(graph), size_px, mean, std)
