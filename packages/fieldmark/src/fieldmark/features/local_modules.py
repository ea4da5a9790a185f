"""Networks in a folder that are neither of timm nor of open_clip: of transformers, traced by torch, or pickled.

```
FOLDER/config.json, model.safetensors, preprocessor_config.json   a network of transformers, as the hub has it
FOLDER/NAME.pt, preprocessing.json                                 a traced or scripted module (torch.jit.save)
FOLDER/NAME.pt, preprocessing.json                                 a pickled module (torch.save), if its code is trusted
```

`preprocessing.json` holds a `data_config` of timm: input_size, mean, std, and perhaps crop_pct and crop_mode.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from fieldmark.errors import InputError, MisuseError
from fieldmark.features.given_backbones import VERSION, GivenBackbone, given_backbone
from fieldmark.features.hub import CLIP_CONFIG, LOCAL, WEIGHTS
from fieldmark.features.settings import FeatureSettings
from fieldmark.registry import require
from fieldmark.sandbox.trusted_code import code_is_trusted

CONFIG, PROCESSOR, PREPROCESSING = "config.json", "preprocessor_config.json", "preprocessing.json"
MODULES = (".pt", ".pth", ".ts", ".torchscript")
READ_BYTES = 1 << 22
TRUST = "If you trust who made it, add --trust-code (trust_code=True)."


def local_module(settings: FeatureSettings) -> GivenBackbone | None:
    """The network in a folder; None for those of timm and open_clip, and where there is none.

    Raises:
        InputError: When files are missing, are something else, or would run code that nobody trusts.
    """
    if not settings.backbone.startswith(LOCAL):
        return None
    folder = Path(settings.backbone.removeprefix(LOCAL))
    if (folder / CLIP_CONFIG).is_file() or not folder.is_dir():
        return None
    if (folder / CONFIG).is_file():
        config = _read(folder / CONFIG)
        if "model_type" not in config or "architecture" in config:
            return None
        made = _of_transformers(settings, folder, config)
    else:
        files = sorted(path for path in folder.iterdir() if path.suffix in MODULES)
        if len(files) != 1:
            return None
        made = _of_file(settings, folder, files[0])
    made.refuse_settings(settings)
    return made


def _of_transformers(settings: FeatureSettings, folder: Path, config: dict[str, Any]) -> GivenBackbone:
    transformers: Any = require("transformers", f"The backbone {settings.backbone}")
    if "auto_map" in config and not code_is_trusted():
        found = f"a network whose code lies beside it ({config['auto_map']})"
        raise InputError(folder / CONFIG, found=found, expected="a network of transformers", hint=TRUST)
    trust = {"local_files_only": True, "trust_remote_code": code_is_trusted()}
    if not (folder / PROCESSOR).is_file():
        hint = "Copy all files of the repository."
        raise InputError(folder, found=f"no {PROCESSOR}", expected="the preprocessing of the network", hint=hint)
    try:
        network = transformers.AutoModel.from_pretrained(str(folder), **trust)
        processor = transformers.AutoImageProcessor.from_pretrained(str(folder), **trust)
    except Exception as error:  # as many ways to be the wrong files as there are networks
        why = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise InputError(
            folder, found=f"files that cannot be loaded ({why})", expected="a network of transformers"
        ) from error
    made = given_backbone(network.eval(), processor, settings.backbone)
    if "auto_map" in config:
        return made
    # All code is that of the library, so that its files say everything.
    files = [path for path in folder.iterdir() if path.suffix in (".json", *WEIGHTS)]
    return replace(made, fingerprint=f"transformers-{_digest(files, [transformers.__version__])}")


def _of_file(settings: FeatureSettings, folder: Path, file: Path) -> GivenBackbone:
    torch: Any = require("torch", f"The backbone {settings.backbone}")
    if not (folder / PREPROCESSING).is_file():
        hint = "Write timm's data_config into it: input_size, mean and std, and perhaps crop_pct and crop_mode."
        raise InputError(folder, found=f"no {PREPROCESSING}", expected="the preprocessing of the network", hint=hint)
    config = _read(folder / PREPROCESSING)
    scripted = is_scripted(file)
    if not scripted and not code_is_trusted():
        raise InputError(
            file,
            found="a file of torch.save, which can run any code when it is read",
            expected="a traced or scripted module (torch.jit.save)",
            hint=TRUST,
        )
    try:
        network = torch.jit.load(file, map_location="cpu") if scripted else _unpickled(torch, file)
    except (RuntimeError, OSError, ValueError, AttributeError, ImportError, EOFError) as error:
        why = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise InputError(file, found=f"something else ({why})", expected="a module of torch") from error
    if not isinstance(network, torch.nn.Module):
        hint = "Weights alone are no network: name the network they fit (backbone=NAME weights=FILE)."
        raise InputError(file, found=f"a {type(network).__name__}", expected="a torch.nn.Module", hint=hint)
    try:
        made = given_backbone(network.eval(), config, settings.backbone)
    except MisuseError as error:
        raise InputError(folder / PREPROCESSING, found=str(error), expected="a data_config of timm") from error
    if not scripted:
        return made
    # All that a traced module does is in its file.
    return replace(made, fingerprint=f"traced-{_digest([file, folder / PREPROCESSING], [torch.__version__])}")


def _digest(files: Sequence[Path], versions: Sequence[str]) -> str:
    """A fingerprint of the content of files and of what reads them."""
    hasher = hashlib.blake2b(json.dumps([VERSION, *versions]).encode(), digest_size=16)
    for path in sorted(files):
        with path.open("rb") as file:
            hasher.update(f"{path.name}\0{path.stat().st_size}\0".encode())
            for block in iter(partial(file.read, READ_BYTES), b""):
                hasher.update(block)
    return hasher.hexdigest()


def _unpickled(torch: Any, file: Path) -> Any:
    return torch.load(file, map_location="cpu", weights_only=False)


def is_scripted(file: Path) -> bool:
    """Whether a file is one of torch.jit.save, which holds its code as text and runs nothing else."""
    if not zipfile.is_zipfile(file):
        return False
    with zipfile.ZipFile(file) as archive:
        return any(name.endswith("/constants.pkl") for name in archive.namelist())


def _read(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise InputError(path, found="text that is not JSON", expected="a configuration") from error
    if not isinstance(data, dict):
        raise InputError(path, found="a list or a value", expected="a configuration")
    return data
