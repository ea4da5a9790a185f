"""Fitted models: in memory, on disk, and on loose files."""

from __future__ import annotations

from fieldmark.models.model import MODEL_FOLDER, Model, feature_source, load_model
from fieldmark.models.photo_by_photo import find_photos

__all__ = ["MODEL_FOLDER", "Model", "feature_source", "find_photos", "load_model"]
