"""Registries by name that import late: listing what exists loads none of it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Generic, TypeVar, cast

from fieldmark.errors import MissingExtraError, MisuseError, did_you_mean

T = TypeVar("T")

# Third-party modules that belong to an extra, so that a failed import can name what to install.
EXTRA_OF_MODULE = {
    "torch": "vision",
    "torchvision": "vision",
    "timm": "vision",
    "lightning_fabric": "train",
    "tensorboard": "tracking",
    "mlflow": "tracking",
    "open_clip": "clip",
    "onnx": "onnx",
    "onnxruntime": "onnx",
    "onnxscript": "onnx",
    "cv2": "masks",
    "segmentation_models_pytorch": "masks",
    "jinja2": "report",
    "matplotlib": "report",
    "soundfile": "audio",
    "soxr": "audio",
    "ai_edge_litert": "birdnet",
    "rasterio": "geo",
    "sklearn": "text",
    "lightgbm": "tabular",
    "transformers": "transformer",
    "ray": "ray",
    "fastapi": "server",
    "sqlalchemy": "server",
    "alembic": "server",
    "uvicorn": "server",
    "argon2": "server",
    "httpx": "server",
    "markdown_it": "server",
    "nh3": "server",
}


def require(module: str, purpose: str) -> object:
    """Imports an optional module, or raises the sentence that names the extra to install."""
    try:
        return import_module(module)
    except ImportError as error:
        root = (error.name or module).partition(".")[0]
        if root not in EXTRA_OF_MODULE:
            raise
        raise MissingExtraError(EXTRA_OF_MODULE[root], root, purpose) from error


class Registry(Generic[T]):
    """Names, each with the place where the object lives and one line about it.

    Args:
        kind: What the names stand for, as used in messages ("method").
        entries: `name -> ("package.module:attribute", "what it is in one line")`.
        group: Under which group of entry points other packages may add to it; empty where they may not.
    """

    def __init__(self, kind: str, entries: Mapping[str, tuple[str, str]], group: str = "") -> None:
        self.kind = kind
        self._own = dict(entries)
        self._group = group

    def __iter__(self) -> Iterator[str]:
        return iter({**self._own, **self._added()})

    def __contains__(self, name: object) -> bool:
        return name in self._own or name in self._added()

    def is_added(self, name: str) -> bool:
        """Whether another package brings an entry."""
        return name not in self._own and name in self._added()

    def about(self, name: str) -> str:
        """Returns the line that describes an entry, without importing it."""
        return self._entry(str(name))[1]

    def __getitem__(self, name: str) -> T:
        module, _, attribute = self._entry(name)[0].partition(":")
        return cast(T, getattr(require(module, f"The {self.kind} {name!r}"), attribute))

    def _entry(self, name: str) -> tuple[str, str]:
        if name in self._own:
            return self._own[name]
        added = self._added()
        if name not in added:
            names = [*self._own, *added]
            raise MisuseError(f"There is no {self.kind} called {name!r}. {did_you_mean(name, names)}")
        return added[name]

    def _added(self) -> dict[str, tuple[str, str]]:
        """What installed packages add."""
        if not self._group:
            return {}
        return {
            point.name: (point.value, f"from the package {point.dist.name if point.dist else point.module}")
            for point in _entry_points(_installed()).get(self._group, ())
        }


def _installed() -> tuple[tuple[str, int], ...]:
    """The folders that packages are imported from with their times, which change when a package is installed."""
    return tuple(
        (folder, Path(folder or ".").stat().st_mtime_ns) for folder in sys.path if Path(folder or ".").is_dir()
    )


@cache
def _entry_points(installed: tuple[tuple[str, int], ...]) -> dict[str, list[EntryPoint]]:
    """The entry points for registries by group, read once for what is installed: it means a file for each package."""
    every = entry_points()
    return {group: list(every.select(group=group)) for group in every.groups if group.startswith("fieldmark.")}
