"""Model folders on the Hugging Face hub: pushed and pulled as they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fieldmark.errors import InputError, MisuseError
from fieldmark.models.guides.guide import ROOT_FILE
from fieldmark.registry import require

HUB_PREFIX = "hf://"
COMMIT = "Upload a model of Fieldmark"


def push(folder: Path, name: str, *, private: bool = False) -> str:
    """Uploads a model folder; the repository is made where there is none. Returns its address.

    Raises:
        InputError: When the hub refuses.
    """
    hub: Any = require("huggingface_hub", "Pushing a model")
    try:
        hub.create_repo(name, private=private, exist_ok=True)
        return str(
            hub.upload_folder(repo_id=name, folder_path=folder, commit_message=COMMIT, ignore_patterns=[ROOT_FILE])
        )
    except Exception as error:  # the hub fails in many ways; its own words say which
        hint = "Log in with `hf auth login`, or set HF_TOKEN to a token that may write."
        raise InputError(name, found=f"no way to upload ({_short(error)})", hint=hint) from error


def pull(address: str) -> Path:
    """Downloads a model folder from `hf://owner/name` or `hf://owner/name@revision`, or finds it in the cache.

    Raises:
        MisuseError: When the address is not one.
        InputError: When there is no such model, or no way to the hub.
    """
    name, _, revision = address.removeprefix(HUB_PREFIX).partition("@")
    if name.count("/") != 1:
        raise MisuseError(f"{address}: found no owner and name, expected for example hf://owner/name.")
    hub: Any = require("huggingface_hub", "Pulling a model")
    try:
        return Path(hub.snapshot_download(name, revision=revision or None))
    except Exception as error:  # the hub fails in many ways; its own words say which
        hint = "Is the name right, and is there a network? A folder that was downloaded elsewhere can be opened too."
        raise InputError(address, found=f"no model ({_short(error)})", expected="a model", hint=hint) from error


def _short(error: Exception) -> str:
    first = (str(error).splitlines() or [""])[0].strip()
    return f"{type(error).__name__}: {first}"[:200]
