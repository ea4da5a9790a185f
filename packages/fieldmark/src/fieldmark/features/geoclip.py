"""The location encoder of GeoCLIP (Vivanco Cepeda et al., NeurIPS 2023): places as 512 numbers.

Its weights lie in the wheel `geoclip` (MIT). Nothing of that package is imported, which would ask for transformers and
more: the file of weights is opened as tensors and nothing else, and the encoder is written out here. Three networks
look at random waves of three lengths over a map (Equal Earth), and their outputs are added.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from fieldmark.errors import MisuseError

WEIGHTS = "geoclip/model/weights/location_encoder_weights.pth"
PACKAGE = "geoclip"
WIDTH = 512
# Equal Earth (Savric, Patterson and Jenny 2018), and what GeoCLIP scales it by.
A1, A2, A3, A4 = 1.340264, -0.081106, 0.000893, 0.003796
SCALE = 66.50336 / 180
BLOCK = 4096


def encode_places(lat: NDArray[np.float64], lon: NDArray[np.float64]) -> NDArray[np.float32]:
    """One row of features for each place.

    Raises:
        MisuseError: When the weights are not installed.
    """
    weights = _weights()
    parts = sorted({name.split(".")[0] for name in weights})
    made = [np.zeros((0, WIDTH), dtype=np.float32)]
    with torch.inference_mode():
        for start in range(0, len(lat), BLOCK):
            place = _equal_earth(*(torch.from_numpy(np.asarray(one[start : start + BLOCK])) for one in (lat, lon)))
            made.append(sum((_encoded(weights, part, place.float()) for part in parts), torch.zeros(())).numpy())
    return np.concatenate(made)


def _equal_earth(lat: torch.Tensor, lon: torch.Tensor) -> torch.Tensor:
    theta = torch.asin(3**0.5 / 2 * torch.sin(torch.deg2rad(lat.double())))
    slope = 3 * (9 * A4 * theta**8 + 7 * A3 * theta**6 + 3 * A2 * theta**2 + A1)
    x = 2 * 3**0.5 * torch.deg2rad(lon.double()) * torch.cos(theta) / slope
    y = A4 * theta**9 + A3 * theta**7 + A2 * theta**3 + A1 * theta
    return torch.stack((x, y), dim=1) * SCALE


def _encoded(weights: dict[str, torch.Tensor], part: str, place: torch.Tensor) -> torch.Tensor:
    angle = 2 * torch.pi * place @ weights[f"{part}.capsule.0.b"].T
    hidden = torch.cat((torch.cos(angle), torch.sin(angle)), dim=1)
    for layer in (1, 3, 5):
        name = f"{part}.capsule.{layer}"
        hidden = functional.relu(functional.linear(hidden, weights[f"{name}.weight"], weights[f"{name}.bias"]))
    return functional.linear(hidden, weights[f"{part}.head.0.weight"], weights[f"{part}.head.0.bias"])


@lru_cache(maxsize=1)
def _weights() -> dict[str, torch.Tensor]:
    try:
        path = Path(str(distribution(PACKAGE).locate_file(WEIGHTS)))
    except PackageNotFoundError as error:
        raise MisuseError(
            "coordinates=geoclip needs the weights that lie in the package geoclip: `pip install --no-deps geoclip`."
        ) from error
    loaded: dict[str, torch.Tensor] = torch.load(path, map_location="cpu", weights_only=True)
    return loaded
