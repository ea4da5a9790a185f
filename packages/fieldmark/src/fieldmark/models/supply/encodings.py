"""Inputs that are no pictures as numbers: columns of the items, texts, numbers and patches of layers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.features.patches import PatchStatistics
from fieldmark.features.settings import EncoderSettings, encoder_of
from fieldmark.features.store import FeatureStore, default_store
from fieldmark.features.tables import Kind, NumbersEncoder, SeriesEncoder, TableColumn, TableEncoder
from fieldmark.features.text_transformers import TransformerTexts
from fieldmark.features.words import WordsEncoder
from fieldmark.models.supply.sources import with_features
from fieldmark.tables.inputs import Input, OwnLayer
from fieldmark.views.parts import Part

Encoder = TableEncoder | WordsEncoder | TransformerTexts | NumbersEncoder

_CLASSES: dict[str, Any] = {
    "columns": TableEncoder,
    "words": WordsEncoder,
    "numbers": NumbersEncoder,
    "series": SeriesEncoder,
    "patches": NumbersEncoder,
}
HOURS = r"^\s*([01]?[0-9]|2[0-3])[:.]([0-5][0-9])"


@dataclass(frozen=True)
class InputEncoder:
    """How one input becomes numbers.

    Args:
        input: The input as the dataset declares it.
        settings: Settings of the encoder.
        store: Where numbers are kept that take long to make, if not in the user's cache.
        fitted: What was learned from train; None before.
    """

    input: Input
    settings: EncoderSettings = field(default_factory=EncoderSettings)
    store: Path | None = field(default=None, compare=False)
    fitted: Encoder | None = field(default=None, compare=False)

    @property
    def kind(self) -> str:
        """Which of `features.settings.ENCODERS` it is."""
        return encoder_of(self.input.extractor)

    def fit(self, train: Part) -> InputEncoder:
        """The encoder as train makes it."""
        encoder: Encoder
        if self.kind == "columns":
            columns = columns_of(train.items, self.input, kinds_of(train.items, self.input))
            settings = self.settings
            encoder = TableEncoder.fit(columns, categories=settings.categories, waves=settings.waves)
        elif self.kind == "words" and self.settings.transformer:
            encoder = TransformerTexts.open(self.settings.transformer)
        elif self.kind == "words":
            encoder = WordsEncoder.fit(_texts(train, self.input.name), words=self.settings.words)
        else:
            encoder = (SeriesEncoder if self.kind == "series" else NumbersEncoder).fit(self._numbers(train))
        return replace(self, fitted=encoder)

    def supply(self, part: Part) -> Part:
        """The part with the numbers of this input; items without any have zeros and are marked."""
        encoder = self.fitted
        if isinstance(encoder, TableEncoder):
            columns = columns_of(part.items, self.input, encoder.kinds)
            numbers, missing = encoder(columns), _without_any(columns, len(part))
        elif isinstance(encoder, WordsEncoder | TransformerTexts):
            flags: list[bool] = []
            numbers = encoder(_noting(_texts(part, self.input.name), flags))
            missing = np.array(flags, dtype=np.bool_)
        elif encoder is not None:
            values = self._numbers(part)
            if values.shape[1] != len(encoder.mean):  # nothing of the kind is known here
                values = np.full((len(part), len(encoder.mean)), np.nan)
            numbers, missing = encoder(values), np.asarray(np.isnan(values).all(axis=1), dtype=np.bool_)
        else:
            raise ValueError("an encoder is fitted to train before it is used")
        numbers[missing] = 0
        supplied = with_features(part, self.input.name, numbers)
        return replace(supplied, missing={**part.missing, self.input.name: missing})

    @property
    def about(self) -> dict[str, Any]:
        """What a run records about it."""
        return {"encoder": self.kind, **self.settings.to_data()}

    @property
    def external_data(self) -> tuple[str, ...]:
        """What it brings in from outside the release, one sentence each."""
        return self.fitted.external_data if isinstance(self.fitted, TransformerTexts) else ()

    def to_data(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Everything but the arrays as plain data, and the arrays."""
        assert self.fitted is not None  # models are saved after they were fitted
        return {"input": asdict(self.input), "settings": self.settings.to_data()}, self.fitted.arrays

    @classmethod
    def from_data(cls, data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> InputEncoder:
        """The encoder that was saved so."""
        declared = Input(**{**data["input"], "columns": tuple(data["input"]["columns"])})
        settings = EncoderSettings(**data["settings"])
        made_by = TransformerTexts if settings.transformer else _CLASSES[encoder_of(declared.extractor)]
        return cls(declared, settings, fitted=made_by.of(arrays))

    def _numbers(self, part: Part) -> NDArray[np.float64]:
        """The numbers of all layers of the input, side by side, NaN where one is missing."""
        found = [np.zeros((len(part), 0))]
        for layer in _layers(part, self.input.name):
            ids = _ids(part, layer)
            found.append(self._of_patches(layer, ids) if self.kind == "patches" else layer.numbers(ids))
        return np.concatenate(found, axis=1)

    def _of_patches(self, layer: OwnLayer, ids: Sequence[str]) -> NDArray[np.float64]:
        """Statistics of the patches, kept in the store by the content of each file."""
        from fieldmark.features.extraction import extract

        statistics = PatchStatistics(*layer.coded)
        distinct = list(dict.fromkeys(ids))
        there = [one for one, file in zip(distinct, layer.there(distinct), strict=True) if file]
        if not there:
            return np.zeros((len(ids), 0))
        store = FeatureStore(self.store or default_store(), statistics.digest)
        made = extract(
            there,
            lambda one: layer.files([one])[0] or b"",
            statistics,
            store,
            what=self.input.name,
            expected="a patch as .npy or GeoTIFF",
        )
        row_of = {one: row for row, one in enumerate(there)}
        found = np.full((len(ids), made.shape[1]), np.nan)
        rows = [row for row, one in enumerate(ids) if one in row_of]
        found[rows] = made[[row_of[ids[row]] for row in rows]]
        return found


def kinds_of(items: pl.DataFrame, declared: Input) -> dict[str, Kind]:
    """What the columns of an input are, by their types; a pair of `lat` and `lon` is one place.

    A date with a time of day counts twice, as a date and as an hour (`NAME hour`).
    """
    kinds: dict[str, Kind] = {}
    for name in declared.columns:
        dtype = items.schema.get(name, pl.String())
        if name in ("lat", "lon") and {"lat", "lon"} <= set(declared.columns):
            kinds["place"] = "place"
        elif isinstance(dtype, pl.Datetime):
            kinds |= {name: "date", f"{name} hour": "hour"}
        elif dtype == pl.Date:
            kinds[name] = "date"
        elif dtype == pl.Time or name == "time":
            kinds[name] = "hour"
        else:
            kinds[name] = "number" if dtype.is_numeric() and not declared.codes else "category"
    return kinds


def columns_of(items: pl.DataFrame, declared: Input, kinds: Mapping[str, Kind]) -> dict[str, TableColumn]:
    """The columns of an input in the given kinds; a column that is not there is missing for all items."""
    return {name: TableColumn(kind, _values(items, name, kind)) for name, kind in kinds.items()}


def _values(items: pl.DataFrame, name: str, kind: Kind) -> Any:
    if kind == "place":
        return np.column_stack([_floats(_column(items, one).cast(pl.Float64, strict=False)) for one in ("lat", "lon")])
    column = _column(items, name.removesuffix(" hour"))
    if kind == "category":
        return [text or None for text in column.cast(pl.String, strict=False).str.strip_chars().to_list()]
    if kind == "number":
        return _floats(column.cast(pl.Float64, strict=False))
    if kind == "hour":
        if column.dtype.is_temporal() and column.dtype != pl.Date:
            return _floats(column.dt.hour() + column.dt.minute() / 60)
        parts = column.cast(pl.String, strict=False)
        return _floats(parts.str.extract(HOURS, 1).cast(pl.Float64) + parts.str.extract(HOURS, 2).cast(pl.Float64) / 60)
    dates = column if column.dtype.is_temporal() else column.cast(pl.String).str.to_date(strict=False)
    leap = dates.dt.is_leap_year().cast(pl.Float64)
    return _floats((dates.dt.ordinal_day() - 1) / (365 + leap))


def _column(items: pl.DataFrame, name: str) -> pl.Series:
    return items[name] if name in items.columns else pl.Series(name, [None] * len(items), dtype=pl.String)


def _floats(series: pl.Series) -> NDArray[np.float64]:
    return series.cast(pl.Float64).fill_null(float("nan")).to_numpy().astype(np.float64)


def _without_any(columns: Mapping[str, TableColumn], number: int) -> NDArray[np.bool_]:
    """The items for which every column is missing."""
    missing = np.ones(number, dtype=np.bool_)
    for column in columns.values():
        if column.kind == "category":
            missing &= np.array([value is None for value in column.values], dtype=np.bool_)
        else:
            finite = np.isfinite(column.values)
            missing &= ~(finite.all(axis=1) if finite.ndim > 1 else finite)
    return missing


def _layers(part: Part, name: str) -> list[OwnLayer]:
    return [layer for _, layer in sorted(part.layers.items()) if layer.input == name]


def _ids(part: Part, layer: OwnLayer) -> list[str]:
    column = part.items["media_ids"].list.first() if layer.by == "media_id" else part.items[layer.by]
    return column.to_list()


def _texts(part: Part, name: str) -> Iterator[str | None]:
    """The text of each item; those of several photos, or of several layers, stand one after the other."""
    layers = _layers(part, name)
    if not layers:
        yield from [None] * len(part)
        return
    for media, observation in part.items.select("media_ids", "observation_id").iter_rows():
        said = [text for layer in layers for text in layer.texts(media if layer.by == "media_id" else [observation])]
        yield "\n".join(text for text in said if text) or None


def _noting(texts: Iterator[str | None], missing: list[bool]) -> Iterator[str | None]:
    for text in texts:
        missing.append(text is None)
        yield text
