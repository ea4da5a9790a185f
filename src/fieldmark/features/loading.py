"""Which library runs a backbone: ONNX Runtime the packaged ones on processors, torch and timm everything else.

Importing torch and timm takes several times as long as answering one photo, so neither is imported without need.
"""

from __future__ import annotations

import sys
from ctypes.util import find_library
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fieldmark.features.packaged import PackagedBackbone, load_packaged, runs_without_torch
from fieldmark.features.settings import FeatureSettings
from fieldmark.foundation.registry import require

if TYPE_CHECKING:
    from fieldmark.features.backbones import Backbone

# The devices of the driver of NVIDIA, and of Linux inside Windows.
GPU_DEVICES = ("/dev/nvidiactl", "/dev/dxg")


def load_backbone(settings: FeatureSettings) -> Backbone | PackagedBackbone:
    """Loads a backbone by name.

    Raises:
        MisuseError: When there is no such network, or its weights cannot be downloaded.
        InputError: When a file of weights does not fit the network.
    """
    if runs_without_torch(settings) and not gpu_can_be_used():
        return load_packaged(settings)
    module: Any = require("fieldmark.features.backbones", "Reading photos")
    backbone: Backbone = module.load_torch_backbone(settings)
    return backbone


def gpu_can_be_used() -> bool:
    """Whether torch would find a GPU; it is asked only on machines with the driver of one."""
    driver = find_library("nvcuda") if sys.platform == "win32" else any(Path(one).exists() for one in GPU_DEVICES)
    if not driver:
        return False
    torch: Any = require("torch", "A backbone on a GPU")
    return bool(torch.cuda.is_available())
