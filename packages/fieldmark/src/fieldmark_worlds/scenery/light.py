"""The light of a scene: sun, shade, overcast, or the camera's flash."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fieldmark_worlds.scenery.noise import Array


@dataclass(frozen=True)
class Light:
    """Light of a scene.

    Attributes:
        direction: Toward the light, in the frame of the camera (right, up, toward the viewer).
        sun: Color of direct light.
        sky: Color of light from everywhere.
        softness: 0 for hard shadows, 1 for an overcast day.
    """

    direction: tuple[float, float, float]
    sun: Array
    sky: Array
    softness: float


def draw_light(rng: np.random.Generator) -> Light:
    """Draws the weather: sun, shade, overcast, or the camera's flash."""
    kind = rng.choice(4, p=(0.35, 0.3, 0.25, 0.1))
    side_on = float(rng.uniform(-1, 1))
    if kind == 3:
        sun, sky, softness = (1.05, 1.05, 1.08), (0.22, 0.23, 0.25), 0.1
        direction = (0.25 * side_on, 0.3, 1.0)
    else:
        sun = ((1.15, 1.04, 0.86), (0.66, 0.68, 0.68), (0.5, 0.52, 0.55))[kind]
        sky = ((0.33, 0.37, 0.42), (0.46, 0.5, 0.47), (0.6, 0.62, 0.64))[kind]
        softness = (0.15, 0.6, 1.0)[kind]
        direction = (side_on, float(rng.uniform(0.5, 1.1)), float(rng.uniform(0.1, 0.9)))
    tint = rng.normal(1, 0.02, 3)
    return Light(
        direction,
        (np.array(sun) * tint * rng.uniform(0.88, 1.12)).astype(np.float32),
        (np.array(sky) * tint * rng.uniform(0.88, 1.12)).astype(np.float32),
        softness,
    )
