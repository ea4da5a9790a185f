"""Repositories of weights: in the hub's cache on this machine, in a folder, or on the hub itself.

Nothing here loads a network. The cache is the one that huggingface_hub keeps:

```
HF_HUB_CACHE/models--<org>--<name>/snapshots/<revision>/<file>
```
"""

from __future__ import annotations

import os
import socket
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from fieldmark.errors import MisuseError
from fieldmark.features.settings import PACKAGED

HUB, LOCAL = "hf-hub:", "local-dir:"
CLIP_CONFIG = "open_clip_config.json"
SECONDS_TO_ANSWER = 5.0
WEIGHTS = (".safetensors", ".bin", ".pt", ".pth")


def hub_cache() -> Path:
    """Where files of the hub are kept on this machine."""
    home = os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "huggingface")
    return Path(os.environ.get("HF_HUB_CACHE") or Path(home, "hub")).expanduser()


def cached_files(repository: str) -> dict[str, Path]:
    """The files of a repository that lie in the cache, by name; those of the newest snapshot first."""
    snapshots = hub_cache() / f"models--{repository.replace('/', '--')}" / "snapshots"
    folders = sorted(snapshots.glob("*"), key=lambda folder: folder.stat().st_mtime, reverse=True)
    path_of: dict[str, Path] = {}
    for folder in folders:
        for file in sorted(folder.iterdir()):
            if file.is_file():
                path_of.setdefault(file.name, file)
    return path_of


def cached_weights(repository: str) -> Path | None:
    """The weights of a repository in the cache, None where there are none."""
    files = cached_files(repository)
    return next((files[name] for suffix in WEIGHTS for name in files if name.endswith(suffix)), None)


def cached_repositories() -> list[str]:
    """The repositories with files in the cache."""
    folders = sorted(hub_cache().glob("models--*--*"))
    return [folder.name.removeprefix("models--").replace("--", "/", 1) for folder in folders]


@cache
def hub_answers() -> bool:
    """Whether the hub can be reached, found out once: its own library tries for half a minute for every file."""
    if os.environ.get("HF_HUB_OFFLINE", "").lower() in ("1", "true", "yes", "on"):
        return False
    if any(os.environ.get(name) for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")):
        return True  # the proxy may reach it where this machine cannot
    place = urlsplit(os.environ.get("HF_ENDPOINT") or "https://huggingface.co")
    try:
        socket.create_connection((place.hostname or "", place.port or 443), timeout=SECONDS_TO_ANSWER).close()
    except OSError:
        return False
    return True


def check_reachable(backbone: str, repository: str | None) -> None:
    """Refuses a backbone whose weights are not in the cache and cannot be downloaded now."""
    if repository and cached_weights(repository) is None and not hub_answers():
        raise unreachable(backbone, ConnectionError())


def has_clip_config(backbone: str) -> bool:
    """Whether a repository, in a folder or on the hub, is one of open_clip."""
    if backbone.startswith(LOCAL):
        return (Path(backbone.removeprefix(LOCAL)) / CLIP_CONFIG).is_file()
    if not backbone.startswith(HUB):
        return False
    repository = backbone.removeprefix(HUB)
    files = cached_files(repository)
    if CLIP_CONFIG in files or "config.json" in files:
        return CLIP_CONFIG in files
    check_reachable(backbone, repository)
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError

    try:
        hf_hub_download(repository, CLIP_CONFIG)
    except LocalEntryNotFoundError as error:
        raise unreachable(backbone, error) from error
    except EntryNotFoundError:
        return False  # the hub answers, and there is no such file
    except Exception as error:  # no network, no such repository, no right to read it
        raise unreachable(backbone, error) from error
    return True


def unreachable(backbone: str, error: Exception) -> MisuseError:
    """The sentence for weights that are not on this machine and cannot be downloaded.

    What it advises is a setting of all that take such a name: a repository is named as a backbone, and only there.
    """
    advice = "--set weights=FILE"
    if backbone.startswith(HUB):
        advice += ", or --set backbone=local-dir:FOLDER for a copy of the whole repository"
    return MisuseError(
        f"The weights of {backbone} could not be downloaded from the hub ({type(error).__name__}). Download them where "
        f"there is a network (`fieldmark backbones` says what), then pass {advice}. Weights that come in a package and "
        f"need no network: {', '.join(PACKAGED)}."
    )
