"""Pooling: several photos of one specimen as one answer, by functions of arrays.

With the probabilities p_i(c) of photo i, and renormalized:

    mean        exp(mean over photos of log p_i(c)): every photo has a say
    max         max over photos of p_i(c): one telling photo is enough
    attention   exp(sum over photos of w_i log p_i(c)), w = softmax(sharpness x quality): better photos count more

The quality of a photo is how sure its own answer is (its negative entropy in nats), unless numbers are given. With
sharpness 0 attention is the mean. The order of the photos does not matter, and one photo keeps its own answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldmark.errors import MisuseError, did_you_mean
from fieldmark.runs.label_scores import LabelScores, log_softmax

Photos = NDArray[np.floating[Any]]  # one row per photo, one column per label
Starts = NDArray[np.int64]  # the first photo of each specimen, whose photos lie together
Weights = NDArray[np.float64]  # one per photo
Pool = Callable[[Photos, Starts, Weights], NDArray[Any]]


def mean_log_probability(photos: Photos, starts: Starts, quality: Weights) -> NDArray[np.float64]:
    """The mean over the photos of each specimen; their quality does not matter.

    >>> mean_log_probability(np.array([[0.0, 2.0], [4.0, 0.0]]), np.array([0]), np.zeros(2))
    array([[2., 1.]])
    """
    counts = np.diff(starts, append=len(photos))[:, None]
    return np.asarray(np.add.reduceat(photos.astype(np.float64), starts, axis=0) / counts)


def highest(photos: Photos, starts: Starts, quality: Weights) -> NDArray[Any]:
    """The highest value of each label over the photos of each specimen; their quality does not matter.

    >>> highest(np.array([[0.0, 2.0], [4.0, 0.0]]), np.array([0]), np.zeros(2))
    array([[4., 2.]])
    """
    return np.asarray(np.maximum.reduceat(photos, starts, axis=0))


def attention(photos: Photos, starts: Starts, quality: Weights) -> NDArray[np.float64]:
    """The mean over the photos of each specimen with weights that are the softmax of their quality.

    >>> attention(np.array([[0.0, 2.0], [4.0, 0.0]]), np.array([0]), np.log([3.0, 1.0]))
    array([[1. , 1.5]])
    """
    counts = np.diff(starts, append=len(photos))
    share = np.exp(quality - np.repeat(np.maximum.reduceat(quality, starts), counts))
    share /= np.repeat(np.add.reduceat(share, starts), counts)
    return np.asarray(np.add.reduceat(share[:, None] * photos, starts, axis=0))


POOLINGS: dict[str, Pool] = {"mean": mean_log_probability, "max": highest, "attention": attention}


def pooling_of(name: str) -> Pool:
    """The pooling of a name.

    Raises:
        MisuseError: When there is none.
    """
    if name not in POOLINGS:
        raise MisuseError(f"There is no pooling called {name!r}. {did_you_mean(name, POOLINGS)}")
    return POOLINGS[name]


def confidence(log_probabilities: Photos) -> Weights:
    """The negative entropy of each row, in nats: 0 for a certain answer, -log(labels) for none at all.

    >>> np.exp(confidence(np.log([[0.5, 0.5]])))
    array([0.5])
    """
    logs = log_probabilities.astype(np.float64)
    chances = np.exp(logs)
    return np.asarray(np.where(chances > 0, chances * logs, 0.0).sum(axis=1))


def pool(
    predictions: LabelScores,
    specimen: NDArray[np.int64],
    pooling: str,
    *,
    quality: Weights | None = None,
    sharpness: float = 1.0,
) -> NDArray[Any]:
    """The scores of each specimen: log-probabilities where the predictions have some, else scores.

    Args:
        predictions: Scores of each photo.
        specimen: The number of the specimen of each photo, from 0 on, none left out.
        pooling: A name of `POOLINGS`.
        quality: One number per photo, higher is better; by default how sure its answer is.
        sharpness: How much the quality counts.

    Returns:
        One row per specimen, one column per label, with unknown last where it competes with them.
    """
    order = np.argsort(specimen, kind="stable")
    starts = np.flatnonzero(np.diff(specimen[order], prepend=-1))
    ranks = predictions.scale == "score"
    photos = predictions.columns if ranks else log_softmax(predictions.columns)
    if quality is None:
        quality = np.zeros(len(photos)) if pooling != "attention" else photo_quality(predictions)
    pooled = pooling_of(pooling)(photos[order], starts, sharpness * quality[order])
    return pooled if ranks else log_softmax(pooled)


def photo_quality(predictions: LabelScores) -> Weights:
    """How sure the answer to each photo is.

    Raises:
        MisuseError: For scores that only rank.
    """
    if predictions.scale == "score":
        raise MisuseError("Attention weighs photos by how sure their answers are, and these scores only rank.")
    return confidence(log_softmax(predictions.columns))
