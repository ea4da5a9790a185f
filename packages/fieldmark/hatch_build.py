"""Puts the runtime of field guides (onnxruntime-web, by version and checksum) into the wheel.

An editable install has none, and neither has a wheel that is built without npm and without a cache: `fieldmark export
app` then fetches it once.
"""

from __future__ import annotations

import importlib.util
import os
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGES = Path("src", "fieldmark", "identification", "field_guide", "npm_packages.py")
PLACE = "fieldmark/identification/field_guide/runtime"


class RuntimeBuildHook(BuildHookInterface[Any]):
    """Fetches the files and names them as files of the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Before the wheel is written."""
        if version == "editable":
            return
        packages = _module(Path(self.root) / PACKAGES)
        cache = _cache() / "npm"
        try:
            files = packages.runtime_files(cache)
        except packages.NpmError as error:
            self.app.display_warning(f"The wheel comes without the runtime of field guides. {error}")
            return
        folder = Path(tempfile.mkdtemp())
        for name, content in files.items():
            (folder / name).write_bytes(content)
            build_data["force_include"][str(folder / name)] = f"{PLACE}/{name}"


def _module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _cache() -> Path:
    """The cache of Fieldmark, as `fieldmark.storage.file_cache` finds it, which cannot be imported yet."""
    usual = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "fieldmark")
    return Path(os.environ.get("FIELDMARK_CACHE") or usual).expanduser()
