"""What methods are given besides the items themselves: features and numbers of each input that they need."""

from __future__ import annotations

from fieldmark.supply.encoding import InputEncoder
from fieldmark.supply.sources import FeatureSource
from fieldmark.supply.supplying import Supply, feature_inputs, refuse_unfit, remarks_on_missing, table_inputs

__all__ = [
    "FeatureSource",
    "InputEncoder",
    "Supply",
    "feature_inputs",
    "refuse_unfit",
    "remarks_on_missing",
    "table_inputs",
]
