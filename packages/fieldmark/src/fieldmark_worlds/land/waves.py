"""Smooth fields over a land as sums of waves, known at every point: from a continent down to a meter."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fieldmark_worlds.nature.kingdom import Floats

METERS_PER_DEGREE = 111_195.0


@dataclass(frozen=True)
class WaveFields:
    """Several fields of about unit variance, each a sum of waves.

    Args:
        northward, eastward: (fields, waves) radians per degree.
        phase: (fields, waves).
        height: (fields, waves) how high each wave is; squares sum to 2 in each field.
    """

    northward: Floats
    eastward: Floats
    phase: Floats
    height: Floats

    @classmethod
    def drawn(
        cls, rng: np.random.Generator, fields: int, waves: int, *, longest_m: float, shortest_m: float, slope: float
    ) -> WaveFields:
        """Fields with wavelengths between two bounds, evenly on a logarithmic scale.

        Args:
            rng: Chance.
            fields: How many.
            waves: How many waves each.
            longest_m: The longest wave.
            shortest_m: The shortest one.
            slope: How height falls with wavelength: a wave of half the length is 2^-slope times as high.
        """
        steps = (np.arange(waves) + rng.uniform(0, 1, (fields, waves))) / waves
        length = longest_m * (shortest_m / longest_m) ** steps
        direction, phase = rng.uniform(0, 2 * np.pi, (2, fields, waves))
        frequency = 2 * np.pi * METERS_PER_DEGREE / length
        height = (length / longest_m) ** slope
        height *= np.sqrt(2 / np.square(height).sum(axis=1, keepdims=True))
        return cls(frequency * np.sin(direction), frequency * np.cos(direction) * 0.7, phase, height)

    def at(self, latitude: Floats, longitude: Floats) -> Floats:
        """(fields, points): the fields at points."""
        result = np.empty((len(self.phase), len(latitude)))
        for field in range(len(self.phase)):
            along = np.multiply.outer(self.northward[field], latitude)
            along += np.multiply.outer(self.eastward[field], longitude) + self.phase[field][:, None]
            result[field] = self.height[field] @ np.sin(along)
        return result

    def around(self, latitude: Floats, longitude: Floats, north: Floats, east: Floats) -> Floats:
        """(points, fields, rows, columns): the fields on a grid around each point.

        A wave on a grid is a product of its rows and columns, so that no sine is taken for a pixel.

        Args:
            latitude: Of the points.
            longitude: Of the points.
            north: (rows,) how many degrees each row lies north of its point.
            east: (points, columns) how many degrees each column lies east of its point.
        """
        base = latitude[:, None, None] * self.northward + longitude[:, None, None] * self.eastward + self.phase
        down = base[..., None] + self.northward[..., None] * north  # (points, fields, waves, rows)
        across = self.eastward[..., None] * east[:, None, None, :]
        height = self.height[..., None]
        left = np.concatenate([height * np.sin(down), height * np.cos(down)], axis=2).astype(np.float32)
        right = np.concatenate([np.cos(across), np.sin(across)], axis=2).astype(np.float32)
        return np.asarray(np.matmul(left.transpose(0, 1, 3, 2), right))
