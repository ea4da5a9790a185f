"""Classifiers that others have trained, which answer without a fit here and say themselves how far to trust them."""

from __future__ import annotations

from abc import abstractmethod

from fieldmark.errors import MisuseError
from fieldmark.identification.photo_answers import PhotoAnswer
from fieldmark.methods.base import Fitted, OnFeatures
from fieldmark.models import Model
from fieldmark.views.parts import View


class TrainedElsewhere(OnFeatures):
    """A classifier on features that learns nothing here."""

    def fit(self, view: View) -> Fitted:
        raise MisuseError("This model has learned already: fit `linear` to photos of your own.")

    @abstractmethod
    def plainly(self, model: Model, answer: PhotoAnswer) -> PhotoAnswer:
        """The answer with its limits told in plain words, and nothing in it that the model cannot promise."""
