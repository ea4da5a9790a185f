"""Multiply-adds of the networks of FungiTastic's Table 4, counted by torch without computing anything."""

from __future__ import annotations

from typing import Any

import timm
import torch
from torch.utils.flop_counter import FlopCounterMode

from fieldmark.suites.tables.fungitastic import ARCHITECTURES, SIZES_PX
from fieldmark.training.recipe import read_recipe


def run() -> dict[str, Any]:
    """Billions of multiply-adds of one photo, by architecture and size."""
    counted: dict[str, dict[str, float]] = {}
    for architecture in ARCHITECTURES.values():
        for size in SIZES_PX:
            recipe = read_recipe(f"fungitastic-{architecture}-{size}")
            counted.setdefault(architecture, {})[str(size)] = round(multiply_adds(recipe["network"], size) / 1e9, 2)
    return {"giga_multiply_adds": counted}


def multiply_adds(name: str, size_px: int) -> float:
    """What one photo of a size costs a network of timm; fully-connected layers and convolutions count."""
    with torch.device("meta"):
        network = timm.create_model(name.partition(".")[0], pretrained=False, num_classes=2829).eval()
        photo = torch.empty(1, 3, size_px, size_px)
    with torch.inference_mode(), FlopCounterMode(display=False) as counter:
        network(photo)
    return float(counter.get_total_flops()) / 2
