"""Extraction on a GPU from files to the store, beside the network alone and a plain script: photos per second.

`python -m studies.perf.extraction_gpu OUT.json [--photos FOLDER --features OUT.npz]` measures on a machine that need
not have more than torch, torchvision and timm, and writes what it has after each result. For ViT-B/16, ResNet-50 and
EfficientNet-Lite0 (random weights, 224 px):

- the network alone on inputs that never leave the device: single precision, TF32, bf16, half, half compiled;
- extraction as `fieldmark fit` does it: files, decoding on the GPU and the CPU, half precision, the store; the same in
  single precision decoded by the CPU; and read by threads, decoded by the GPU alone;
- a plain script of forty lines: two threads decode and resize on the GPU photo by photo, the network is compiled.

Besides, photos decoded by processes with and without memory that they keep (`square_readers`). With `--photos`,
features of real photos by EfficientNet-Lite0 are written by both ways, so that methods can be fitted on them elsewhere.
"""

from __future__ import annotations

import argparse
import itertools
import json
import queue
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import timm
import torch
from torch.nn import functional
from torchvision.io import ImageReadMode, decode_jpeg

from fieldmark.features import gpu_extraction, square_readers
from fieldmark.features.backbones import Backbone, load_torch_backbone
from fieldmark.features.extraction import BLOCK_PHOTOS, extract
from fieldmark.features.photo_blocks import PhotoBlock
from fieldmark.features.photos import Preprocessing
from fieldmark.features.resampling import resampler_for_many
from fieldmark.features.settings import FeatureSettings
from fieldmark.features.square_readers import SquareReaders
from fieldmark.features.store import FeatureStore
from fieldmark.work.blocks import all_cores, blocks_of, map_blocks
from studies.perf.camera_photos import read_photo, write_camera_photos
from studies.perf.jobs import JOBS
from studies.perf.machine import about_machine

NETWORKS = ("vit_base_patch16_224", "resnet50", "tf_efficientnet_lite0")
PHOTOS = {500: 98_304, 1600: 16_384}
DRAWN, BATCH, STEPS, SIZE_PX = 24, 256, 20, 224
QUALITY = 80  # about 44 KiB at 500 px
HOW = Preprocessing(SIZE_PX, 0.875, (0.5,) * 3, (0.5,) * 3)
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class TimedStore(FeatureStore):
    """A store that knows when how many photos were in it."""

    def __init__(self, root: Path, digest: str) -> None:
        super().__init__(root, digest)
        self.times: list[tuple[float, int]] = []

    def add(self, keys: Sequence[bytes], outputs: Any) -> None:
        super().add(keys, outputs)
        self.times.append((time.perf_counter(), len(keys)))

    def later_rate(self) -> float:
        """Photos per second after the first third of them was stored."""
        times, photos = np.array([one for one, _ in self.times]), np.cumsum([number for _, number in self.times])
        third = int(np.searchsorted(photos, photos[-1] / 3))
        return round(float((photos[-1] - photos[third]) / max(times[-1] - times[third], 1e-9)), 1)


class Results:
    """Figures by name, kept on disk after each.

    Args:
        path: The file.
        about: What stands in it besides.
        only: What the names of those end with that are measured; all if empty.
    """

    def __init__(self, path: Path, about: dict[str, Any], only: Sequence[str] = ()) -> None:
        self.path, self.data, self.only = path, about, tuple(only)

    def add(self, group: str, name: str, measure: Callable[[], Any]) -> None:
        if self.only and not name.endswith(self.only):
            return
        try:
            value = measure()
        except Exception as error:  # the others can still be measured
            value = f"failed: {type(error).__name__}: {str(error)[:200]}"
        self.data.setdefault(group, {})[name] = value
        print(group, "|", name, "|", value, flush=True)
        self.path.write_text(json.dumps(self.data, indent=2))


def main() -> None:
    """Measures, and writes after each result."""
    parser = argparse.ArgumentParser(prog="python -m studies.perf.extraction_gpu", description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--photos", type=Path)
    parser.add_argument("--features", type=Path)
    parser.add_argument("--share", type=float, default=1.0, help="of the usual number of photos")
    parser.add_argument("--networks", nargs="*", default=list(NETWORKS))
    parser.add_argument("--only", nargs="*", default=[], help="what the names of the figures end with")
    arguments = parser.parse_args()
    about = about_machine(JOBS["gpu"].packages)
    device = torch.cuda.get_device_name() if DEVICE == "cuda" else "processors"
    command = "python -m studies.perf.extraction_gpu OUT.json --photos FOLDER --features OUT.npz"
    results = Results(arguments.out, {"command": command, **about, "device": device}, arguments.only)
    if arguments.photos:
        results.add("agreement", "efficientnet_lite0", lambda: agreement(arguments.photos, arguments.features))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = {}
        for long_px, number in PHOTOS.items():
            paths[long_px] = write_photos(folder / str(long_px), max(256, int(arguments.share * number)), long_px)
            sizes = [Path(path).stat().st_size for path in paths[long_px][:DRAWN]]
            results.data.setdefault("kib_per_photo", {})[f"{long_px} px"] = round(sum(sizes) / len(sizes) / 1024)
        results.data["photos"] = {f"{long_px} px": len(each) for long_px, each in paths.items()}
        for long_px, each in paths.items():
            by_processes(results, f"{long_px} px", each[:8192] if long_px == 500 else each[:4096])
        for network in arguments.networks:
            measure_network(results, network, paths, folder)
        results.data["reader"] = resampler_for_many.reader
        results.path.write_text(json.dumps(results.data, indent=2))


def write_photos(folder: Path, number: int, long_px: int) -> list[str]:
    """Writes photos whose pixels repeat and whose bytes do not: what follows a JPEG is no part of its picture."""
    write_camera_photos(folder, DRAWN, long_px, quality=QUALITY)
    drawn = [path.read_bytes() for path in sorted(folder.rglob("*.jpg"))]
    for place in range(DRAWN, number):
        (folder / "photo" / f"{place:06}.jpg").write_bytes(drawn[place % DRAWN] + place.to_bytes(4, "big"))
    return [str(path) for path in sorted(folder.rglob("*.jpg"))]


def by_processes(results: Results, size: str, paths: Sequence[str]) -> None:
    """Photos that processes alone decode, each with two blocks ahead, after they have started."""

    def read_all(read: Callable[[PhotoBlock], Any]) -> object:
        blocks = (PhotoBlock(block, [None] * len(block), read_photo) for block in blocks_of(paths, BLOCK_PHOTOS))
        return deque(map_blocks(read, blocks, all_cores("thread")), maxlen=0)

    def measure(memory: dict[str, str]) -> float:
        usual, square_readers.KEPT_MEMORY = square_readers.KEPT_MEMORY, memory
        try:
            with SquareReaders(HOW, Path("no store"), all_cores().workers, BLOCK_PHOTOS) as read:
                read_all(read)
                return rate(len(paths), lambda: read_all(read))
        finally:
            square_readers.KEPT_MEMORY = usual

    results.add(f"processes, {size}", "as before", lambda: measure({}))
    results.add(f"processes, {size}", "memory kept", lambda: measure(square_readers.KEPT_MEMORY))


def measure_network(results: Results, name: str, paths: dict[int, list[str]], folder: Path) -> None:
    """All that is measured of one network."""
    network = timm.create_model(name, pretrained=False, num_classes=1000).eval().requires_grad_(False)
    network = network.to(DEVICE, memory_format=torch.channels_last)
    plain = Backbone(name, "random", network, HOW)
    fast = replace(plain, precision="half", decoder="gpu")
    stores = itertools.count()

    def from_files(backbone: Backbone, ids: Sequence[str]) -> dict[str, float]:
        store = TimedStore(folder / f"store-{name}-{next(stores)}", backbone.digest)
        whole = rate(len(ids), lambda: extract(ids, read_photo, backbone, store))
        return {"whole": whole, "after the start": store.later_rate()}

    def gpu_alone(ids: Sequence[str]) -> dict[str, float]:
        usual, square_readers.MANY_PHOTOS = square_readers.MANY_PHOTOS, len(ids) + 1
        try:
            return from_files(fast, ids)
        finally:
            square_readers.MANY_PHOTOS = usual

    def compiled(ids: Sequence[str]) -> dict[str, float]:
        usual, gpu_extraction.COMPILED_FROM = gpu_extraction.COMPILED_FROM, 1
        try:
            extract(ids[:4096], read_photo, fast, FeatureStore(folder / f"warm-{name}", "compiles"))
            return from_files(fast, ids)
        finally:
            gpu_extraction.COMPILED_FROM = usual

    for words, forward in forwards(network).items():
        results.add(name, words, forward)
    for long_px, ids in paths.items():
        from_px, some = f"extraction from {long_px} px", ids[: max(256, len(ids) // 8)]
        results.add(name, from_px, partial(from_files, fast, ids))
        results.add(name, f"{from_px}, read by threads, decoded by the GPU alone", partial(gpu_alone, ids))
        if long_px == 500:
            results.add(name, f"{from_px}, compiled before", partial(compiled, ids))
        results.add(name, f"{from_px}, single, decoded by the CPU", partial(from_files, plain, some))
        results.add(name, f"plain script, {long_px} px", partial(plain_script, network, some))


def forwards(network: Any) -> dict[str, Callable[[], float]]:
    """The network alone, on inputs that never leave the device."""
    inputs = torch.randn(BATCH, 3, SIZE_PX, SIZE_PX, device=DEVICE).contiguous(memory_format=torch.channels_last)

    def measure(run: Callable[[], Any]) -> float:
        with torch.inference_mode():
            run()
            run()
            return rate(STEPS * BATCH, lambda: [run() for _ in range(STEPS)])

    def tf32() -> float:
        torch.set_float32_matmul_precision("high")
        try:
            return measure(lambda: network(inputs))
        finally:
            torch.set_float32_matmul_precision("highest")

    def bf16() -> float:
        with torch.autocast(DEVICE, torch.bfloat16):
            return measure(lambda: network(inputs))

    def half(*, compiled: bool) -> float:
        import copy

        halved = copy.deepcopy(network).half()
        run = torch.compile(halved, dynamic=False) if compiled else halved
        return measure(lambda: run(inputs.half()))

    return {
        "network alone, single": lambda: measure(lambda: network(inputs)),
        "network alone, TF32": tf32,
        "network alone, bf16": bf16,
        "network alone, half": lambda: half(compiled=False),
        "network alone, half, compiled": lambda: half(compiled=True),
    }


def plain_script(network: Any, paths: Sequence[str]) -> float:
    """What one would write in forty lines: threads decode and resize photo by photo, the network is compiled."""
    import copy

    halved = torch.compile(copy.deepcopy(network).half(), dynamic=False)
    with torch.inference_mode():
        example = torch.zeros(BATCH, 3, SIZE_PX, SIZE_PX, device=DEVICE).half()
        halved(example.contiguous(memory_format=torch.channels_last))
    side = round(HOW.size_px / HOW.crop)

    def square(photo: Any) -> Any:
        height, width = photo.shape[1:]
        size = [max(SIZE_PX, round(length * side / min(height, width))) for length in (height, width)]
        large = functional.interpolate(photo[None].half(), size=size, mode="bicubic", antialias=True)
        top, left = (size[0] - SIZE_PX) // 2, (size[1] - SIZE_PX) // 2
        return large[..., top : top + SIZE_PX, left : left + SIZE_PX]

    def work() -> None:
        blocks: queue.SimpleQueue[Any] = queue.SimpleQueue()
        ready: queue.Queue[Any] = queue.Queue(4)
        for block in blocks_of(paths, BATCH):
            blocks.put(block)

        def decode() -> None:
            with torch.inference_mode(), torch.cuda.stream(torch.cuda.Stream()):
                while True:
                    try:
                        block = blocks.get_nowait()
                    except queue.Empty:
                        return ready.put(None)
                    encoded = [torch.frombuffer(bytearray(read_photo(path)), dtype=torch.uint8) for path in block]
                    photos = decode_jpeg(encoded, mode=ImageReadMode.RGB, device=DEVICE)
                    batch = torch.cat([square(photo) for photo in photos]).div(127.5).sub(1)
                    torch.cuda.current_stream().synchronize()
                    ready.put(batch)

        threads = [threading.Thread(target=decode) for _ in range(2)]
        for thread in threads:
            thread.start()
        ended, outputs = 0, []
        with torch.inference_mode():
            while ended < len(threads):
                batch = ready.get()
                if batch is None:
                    ended += 1
                elif len(batch) == BATCH:
                    outputs.append(halved(batch.contiguous(memory_format=torch.channels_last)).cpu())

    return rate(len(paths), work)


def agreement(photos: Path, features: Path) -> dict[str, Any]:
    """Features of real photos by the pretrained Lite0, in single precision and CPU decoding and as a GPU makes them."""
    fast = load_torch_backbone(FeatureSettings())
    ways = {
        "single, CPU decoder": replace(fast, precision="single", decoder="cpu"),
        "half, CPU decoder": replace(fast, decoder="cpu"),
        "single, GPU decoder": replace(fast, precision="single"),
        "half, GPU decoder": fast,
    }
    ids = [str(path) for path in sorted(photos.rglob("*.jpg"))]
    made, names = {}, [str(Path(path).relative_to(photos)) for path in ids]
    with tempfile.TemporaryDirectory() as name:
        for way, backbone in ways.items():
            made[way] = extract(ids, read_photo, backbone, FeatureStore(Path(name, way.replace(" ", "")), "one"))
    arrays: dict[str, Any] = {way: rows.astype(np.float16) for way, rows in made.items()}
    np.savez(features, names=np.array(names), **arrays)
    return {"photos": len(ids), **compared(made)}


def compared(made: dict[str, Any]) -> dict[str, Any]:
    """The cosine of each way with the first, over all photos."""
    first, *others = made
    lengths = {way: np.linalg.norm(rows, axis=1) for way, rows in made.items()}
    cosine = {way: (made[first] * made[way]).sum(1) / (lengths[first] * lengths[way]) for way in others}
    return {
        way: {"mean": float(each.mean()), "1 %": float(np.quantile(each, 0.01)), "least": float(each.min())}
        for way, each in cosine.items()
    }


def rate(items: int, work: Callable[[], object]) -> float:
    """Items per second."""
    started = time.perf_counter()
    work()
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    return round(items / (time.perf_counter() - started), 1)


if __name__ == "__main__":
    main()
