"""Extraction and training on a GPU with everything included, and where the time goes: `python -m studies.perf gpu`.

For ResNet-50, ViT-B/16, ConvNeXt-B and EfficientNet-Lite0 (random weights, 224 px):

- the network alone, on inputs that never leave the device, in single precision as features are computed, and in bf16;
- extraction as `fieldmark fit` does it: files, decoding in processes, network, store;
- the same with the GPU's own JPEG decoder (`torchvision.io.decode_jpeg(device="cuda")`), resizing on the device;
- training, as `studies.perf.training_gpu` has it: plain loops, the engine without a loader, raw and JPEG packs.

Besides, the decoders alone, and a longer extraction by ResNet-50 with photos read by processes and by threads. `reader`
in the result says whether photos were resized by compiled loops or by Pillow, and why. A machine with a GPU may have
nothing but torch: `python -m studies.perf.gpu OUT.json` measures there, and writes what it has after each part. `python
-m studies.perf.gpu --rehearse` goes through all of it with a tiny network on whatever device there is and writes
nothing; its figures mean nothing.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional
from torchvision.io import ImageReadMode, decode_jpeg

from fieldmark.features import square_readers
from fieldmark.features.backbones import Backbone
from fieldmark.features.extraction import BLOCK_PHOTOS, extract
from fieldmark.features.photo_blocks import PhotoBlock
from fieldmark.features.photos import Preprocessing, decode_square
from fieldmark.features.resampling import resampler_for_many
from fieldmark.features.square_readers import SquareReaders
from fieldmark.features.store import FeatureStore
from fieldmark.training.networks import make_network
from fieldmark.work.blocks import all_cores, blocks_of, map_blocks
from studies.perf import training_gpu
from studies.perf.camera_photos import read_photo, write_camera_photos
from studies.perf.jobs import JOBS
from studies.perf.machine import about_machine
from studies.perf.training_gpu import CLASSES, DEVICE, SIZE_PX, wait

NETWORKS = {"resnet50": 256, "vit_base_patch16_224": 256, "convnext_base": 128, "tf_efficientnet_lite0": 512}
LONG_PX, PHOTOS, DRAWN, STEPS = (500, 1600), 8192, 24, 15
LONG_NETWORK, LONG_FACTOR = "resnet50", 3
HOW = Preprocessing(SIZE_PX, 0.875, (0.5,) * 3, (0.5,) * 3)
SIDE_PX = round(HOW.size_px / HOW.crop)
PARTS = ("extraction", "training", "long")
Keep = Callable[[dict[str, Any]], object]


def run() -> dict[str, Any]:
    """Photos per second by network, and of the decoders by size of photo."""
    warm_up(NETWORKS)
    return measured(NETWORKS, PHOTOS, STEPS, compiled=True)


def measured(
    networks: dict[str, int],
    photos: int,
    steps: int,
    *,
    compiled: bool,
    parts: Sequence[str] = PARTS,
    keep: Keep = lambda result: None,
) -> dict[str, Any]:
    """All rates; a part that fails says so, and what is known is kept after each, so that nothing is lost."""
    device = torch.cuda.get_device_name() if DEVICE == "cuda" else "processors"
    result: dict[str, Any] = {"device": device, "photos": photos, "decoders": {}, "networks": {}}

    def kept() -> None:
        result["reader"] = resampler_for_many.reader
        keep(result)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for long_px in LONG_PX:
            write_photos(folder / str(long_px), photos if long_px == LONG_PX[0] else photos // 4, long_px)
            rates = result["decoders"].setdefault(f"{long_px} px", {})
            _measure(_decoders(_paths(folder / str(long_px))), rates, kept)
        for network, batch in networks.items():
            rates = result["networks"].setdefault(f"{network}, batch {batch}", {})
            if "extraction" in parts:
                torch.set_float32_matmul_precision("highest")  # as features are computed
                _measure(_extraction(network, batch, folder, steps), rates, kept)
            if "training" in parts:
                torch.set_float32_matmul_precision("high")
                _measure(_training(network, batch, folder, rates, compiled=compiled), {}, kept)
        if "long" in parts:
            long: dict[str, Any] = {"network": LONG_NETWORK, "photos": {}, "photos_per_s": {}}
            result["long_extraction"] = long
            _measure(_long_extraction(folder, LONG_FACTOR * photos, long["photos"]), long["photos_per_s"], kept)
    return result


def write_photos(folder: Path, number: int, long_px: int) -> None:
    """Writes photos whose pixels repeat and whose bytes do not: what follows a JPEG is no part of its picture."""
    write_camera_photos(folder, min(number, DRAWN), long_px)
    drawn = [path.read_bytes() for path in _paths(folder)]
    for place in range(len(drawn), number):
        (folder / "photo" / f"{place:05}.jpg").write_bytes(drawn[place % len(drawn)] + place.to_bytes(4, "big"))


def _measure(parts: Iterator[tuple[str, Callable[[], Any]]], rates: dict[str, Any], keep: Callable[[], object]) -> None:
    for words, measure in parts:
        try:
            rate = measure()
        except (RuntimeError, AssertionError, ImportError) as error:
            rate = f"failed: {str(error).splitlines()[0] if str(error) else type(error).__name__}"
        print(f"{words}: {rate}", flush=True)
        rates[words] = round(rate, 1) if isinstance(rate, float) else rate
        keep()


def _decoders(paths: Sequence[Path]) -> Iterator[tuple[str, Callable[[], float]]]:
    def ours() -> object:
        work = lambda block: [decode_square(path.read_bytes(), HOW) for path in block]  # noqa: E731
        return list(map_blocks(work, blocks_of(paths, BLOCK_PHOTOS), all_cores("thread")))

    def by_processes() -> object:
        blocks = (PhotoBlock(block, [None] * len(block), read_photo) for block in blocks_of(names, BLOCK_PHOTOS))
        return deque(map_blocks(read, blocks, all_cores("thread")), maxlen=0)

    def device() -> object:
        return [device_squares([path.read_bytes() for path in block]) for block in blocks_of(paths, BLOCK_PHOTOS)]

    ours()  # compiles what a process that reads many photos compiles
    yield "threads and libjpeg-turbo", lambda: _rate(len(paths), ours)
    names, nothing_stored = [str(path) for path in paths], paths[0].parent / "no store"
    with SquareReaders(HOW, nothing_stored, all_cores().workers, BLOCK_PHOTOS) as read:
        by_processes()  # each of them compiles too
        yield "processes and libjpeg-turbo", lambda: _rate(len(paths), by_processes)
    yield "decode_jpeg on the device", lambda: _rate(len(paths), device)


def device_squares(contents: Sequence[bytes]) -> Any:
    """Photos decoded, resized and cut on the device, one after the other where their sizes differ."""
    encoded = [torch.frombuffer(bytearray(data), dtype=torch.uint8) for data in contents]
    squares = []
    for photo in decode_jpeg(encoded, mode=ImageReadMode.RGB, device=DEVICE):
        height, width = photo.shape[1:]
        size = [max(SIZE_PX, round(length * SIDE_PX / min(height, width))) for length in (height, width)]
        large = functional.interpolate(photo[None].float(), size=size, mode="bicubic", antialias=True)
        top, left = (size[0] - SIZE_PX) // 2, (size[1] - SIZE_PX) // 2
        squares.append(large[..., top : top + SIZE_PX, left : left + SIZE_PX])
    return torch.cat(squares)


def _extraction(name: str, batch: int, folder: Path, steps: int) -> Iterator[tuple[str, Callable[[], float]]]:
    network = make_network(name, "random", classes=CLASSES, size=SIZE_PX).eval().requires_grad_(False)
    network = network.to(DEVICE, memory_format=torch.channels_last)
    backbone = Backbone(name, "random", network, HOW)
    numbers = itertools.count()

    def forward(precision: Any) -> float:
        inputs = training_gpu.inputs_on_device(batch)
        with torch.inference_mode(), torch.autocast(DEVICE, precision, enabled=precision != torch.float32):
            network(inputs)
            wait()
            return _rate(steps * batch, lambda: [network(inputs) for _ in range(steps)])

    def from_files(paths: Sequence[Path]) -> object:
        ids = [str(path) for path in paths]
        store = FeatureStore(folder / f"store{next(numbers)}", backbone.digest)
        return extract(ids, read_photo, backbone, store)

    @torch.inference_mode()  # type: ignore[untyped-decorator]
    def on_device(paths: Sequence[Path]) -> object:
        outputs = []
        for block in blocks_of(paths, batch):
            pixels = device_squares([path.read_bytes() for path in block]).div(255).sub(0.5).div(0.5)
            outputs.append(network(pixels.contiguous(memory_format=torch.channels_last)).half().cpu())
        return torch.cat(outputs)

    yield "forward, inputs on the device", lambda: forward(torch.float32)
    yield "forward, inputs on the device, bf16", lambda: forward(torch.bfloat16)
    for long_px in LONG_PX:
        paths = _paths(folder / str(long_px))
        yield f"extraction from files of {long_px} px", partial(_rate, len(paths), partial(from_files, paths))
        yield f"extraction, {long_px} px decoded on the device", partial(_rate, len(paths), partial(on_device, paths))


def _long_extraction(folder: Path, number: int, photos: dict[str, int]) -> Iterator[tuple[str, Callable[[], float]]]:
    """What is left of the start of processes when there are more photos; threads are given half of them."""
    network = make_network(LONG_NETWORK, "random", classes=CLASSES, size=SIZE_PX).eval().requires_grad_(False)
    backbone = Backbone(LONG_NETWORK, "random", network.to(DEVICE, memory_format=torch.channels_last), HOW)
    write_photos(folder / "many", number, LONG_PX[0])
    names = [str(path) for path in _paths(folder / "many")]

    def measure(way: str, ids: list[str], many: int) -> float:
        usual, square_readers.MANY_PHOTOS = square_readers.MANY_PHOTOS, many
        photos[way], store = len(ids), FeatureStore(folder / f"long {way}", backbone.digest)
        try:
            return _rate(len(ids), lambda: extract(ids, read_photo, backbone, store))
        finally:
            square_readers.MANY_PHOTOS = usual

    yield "processes", partial(measure, "processes", names, 1)
    yield "threads", partial(measure, "threads", names[: number // 2], number + 1)


def _training(
    name: str, batch: int, folder: Path, rates: dict[str, Any], *, compiled: bool
) -> Iterator[tuple[str, Callable[[], dict[str, float]]]]:
    def measure() -> dict[str, float]:
        photos = folder / str(LONG_PX[0])
        training_gpu.measure(name, batch, photos, folder / "packs", ("raw", "jpeg"), rates, compiled=compiled)
        rates.update({words: round(rate, 1) for words, rate in rates.items() if isinstance(rate, float)})
        return rates

    yield f"training {name}", measure


def _paths(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.jpg"))


def _rate(items: int, work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    wait()
    return items / (time.perf_counter() - started)


def warm_up(networks: dict[str, int]) -> None:
    """Compiles all networks at once, in processes of their own; what follows finds it in torch's cache."""
    command = [sys.executable, "-m", "studies.perf.gpu", "--compile"]
    started = [subprocess.Popen([*command, name, str(batch)]) for name, batch in networks.items()]
    print("compiled:", [process.wait() == 0 for process in started], flush=True)


def main() -> None:
    """Measures on a machine that need not have more than torch."""
    parser = argparse.ArgumentParser(prog="python -m studies.perf.gpu", description=__doc__)
    parser.add_argument("out", type=Path, nargs="?")
    parser.add_argument("--networks", nargs="*", default=list(NETWORKS), choices=list(NETWORKS))
    parser.add_argument("--parts", nargs="*", default=list(PARTS), choices=PARTS)
    parser.add_argument("--rehearse", action="store_true")
    parser.add_argument("--compile", nargs=2, metavar=("NETWORK", "BATCH"))
    arguments = parser.parse_args()
    if arguments.compile:
        torch.set_float32_matmul_precision("high")
        training_gpu.WARMUP, training_gpu.STEPS = 1, 1
        training_gpu.plain_loop(arguments.compile[0], int(arguments.compile[1]), compiled=True)
        return
    if arguments.rehearse:
        training_gpu.WARMUP, training_gpu.STEPS, training_gpu.ENGINE_STEPS = 1, 2, 2
        print(measured({"resnet10t": 8}, photos=16, steps=2, compiled=False))
        return
    about = about_machine(JOBS["gpu"].packages)
    networks = {name: NETWORKS[name] for name in arguments.networks}
    if "training" in arguments.parts:
        warm_up(networks)

    def keep(result: dict[str, Any]) -> None:
        arguments.out.write_text(json.dumps({**about, **result}, indent=2))

    measured(networks, PHOTOS, STEPS, compiled=True, parts=arguments.parts, keep=keep)


if __name__ == "__main__":
    main()
