"""Registries by name that import late: listing what exists loads none of it. And other imports at another time."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache, cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any, Generic, TypeVar, cast

from fieldmark.errors import MissingExtraError, MisuseError, did_you_mean

T = TypeVar("T")

# Third-party modules that belong to an extra, so that a failed import can name what to install.
EXTRA_OF_MODULE = {
    "torch": "train",
    "torchvision": "vision",
    "timm": "vision",
    "lightning_fabric": "train",
    "tensorboard": "tracking",
    "mlflow": "tracking",
    "open_clip": "clip",
    "onnx": "photos",
    "onnxruntime": "photos",
    "onnxscript": "onnx",
    "openvino": "fast",
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
    "fastapi": "web",
    "sqlalchemy": "server",
    "alembic": "server",
    "uvicorn": "web",
    "argon2": "server",
    "httpx": "submit",
    "cryptography": "submit",
    "fieldmark_challenge": "server",
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


def imported(place: str) -> Any:
    """What another module holds, imported now.

    Args:
        place: Where it is, as "package.module:name".

    >>> imported("collections:OrderedDict").__name__
    'OrderedDict'
    """
    module, _, name = place.partition(":")
    return attrgetter(name)(import_module(module))


class Registry(Generic[T]):
    """Names, each with the place where the object lives and one line about it.

    Args:
        kind: What the names stand for, as used in messages ("method").
        entries: `name -> ("package.module:attribute", "what it is in one line")`, or what finds them when first asked.
        group: Under which group of entry points other packages may add to it; empty where they may not.
    """

    def __init__(
        self,
        kind: str,
        entries: Mapping[str, tuple[str, str]] | Callable[[], Mapping[str, tuple[str, str]]],
        group: str = "",
    ) -> None:
        self.kind = kind
        self._entries = entries
        self._group = group

    @cached_property
    def _own(self) -> dict[str, tuple[str, str]]:
        return dict(self._entries() if callable(self._entries) else self._entries)

    def __iter__(self) -> Iterator[str]:
        return iter({**self._own, **self._added()})

    def __contains__(self, name: object) -> bool:
        return name in self._own or name in self._added()

    def is_added(self, name: str) -> bool:
        """Whether another package brings an entry."""
        return name not in self._own and name in self._added()

    def name_of(self, found: Any) -> str | None:
        """Under which name an object stands here; None for one that does not."""
        place = f"{found.__module__}:{found.__qualname__}"
        return next((name for name in self if self._entry(name)[0] == place), None)

    def is_loaded(self, name: str) -> bool:
        """Whether the module of an entry was imported before."""
        return self._entry(name)[0].partition(":")[0] in sys.modules

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


def declared(package: str, folder: Path, name: str) -> Iterator[tuple[str, str]]:
    """What the modules of a package assign to a name, as source text: found by reading, without importing any.

    The assignment begins at the left margin, and ends on the same line or with the closing bracket at the margin, as
    the formatter leaves it.

    Args:
        package: The name of the package.
        folder: Where it lies; its subpackages are read as well.
        name: What is assigned.

    Yields:
        The name of each module that has the assignment, in the order of names, with the text on its right side.
    """
    pattern = re.compile(rf"^{name} = (\w*\(\n.*?^\)|\w*\[\n.*?^\]|\w*\{{\n.*?^\}}|[^\n]+)", re.MULTILINE | re.DOTALL)
    for path in sorted(folder.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        found = pattern.search(text, start) if (start := text.find(f"\n{name} = ") + 1) else None
        if found:
            parts = path.relative_to(folder).with_suffix("").parts
            yield ".".join((package, *parts)), found[1]


def late_imports(package: str, *places: str) -> Callable[[str], Any]:
    """The `__getattr__` of a package whose names live in other modules.

    Args:
        package: The name of the package.
        places: Where each of its names lives, as "package.module:name".

    >>> late_imports("mine", "collections:OrderedDict")("OrderedDict").__name__
    'OrderedDict'
    >>> late_imports("mine", "collections:OrderedDict")("Counter")
    Traceback (most recent call last):
    AttributeError: module 'mine' has no attribute 'Counter'
    """
    module_of = {name: module for module, _, name in (place.partition(":") for place in places)}

    def find(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(module_of[name]), name)

    return find


def imported_anew(cls: type[Any]) -> type[Any]:
    """The class as a fresh import of its package has it; modules of other packages are those that are there.

    What the package keeps elsewhere (in files, in other packages) is not undone by it.
    """
    root = cls.__module__.partition(".")[0]
    before = _modules_of(root)
    for name in before:
        del sys.modules[name]
    try:
        anew: type[Any] = attrgetter(cls.__qualname__)(import_module(cls.__module__))
        return anew
    finally:
        for name in _modules_of(root):
            del sys.modules[name]
        sys.modules.update(before)


def _modules_of(root: str) -> dict[str, ModuleType]:
    return {name: module for name, module in sys.modules.items() if name == root or name.startswith(f"{root}.")}
