"""Selection tables of Raven: what is heard in a recording, from when to when, between which frequencies.

```
Selection<TAB>View<TAB>Channel<TAB>Begin File<TAB>Begin Time (s)<TAB>End Time (s)<TAB>Low Freq (Hz)<TAB>High Freq (Hz)<TAB>Species Code
1<TAB>Spectrogram 1<TAB>1<TAB>PER54.wav<TAB>12.0<TAB>15.0<TAB>150<TAB>15000<TAB>norcar
```

Quirks:

- Raven writes a selection once for each view ("Waveform 1", "Spectrogram 1"), both with the same number. It is one
  selection, and the spectrogram's row is kept, since only that one has frequencies.
- The label is an annotation column that people name themselves. `LABEL_COLUMNS` are the names that are understood.
- Low and high frequency are swapped in some tables made by hand.
- Some people save selection tables with commas.
"""  # noqa: E501  (a header is one line)

from __future__ import annotations

import io
from pathlib import Path

import polars as pl

from fieldmark.errors import InputError
from fieldmark.storage.files import appearing_file
from fieldmark.tables.reader import read_csv
from fieldmark.tables.schema import missing_column, parse_column

START, END, LOW, HIGH = "Begin Time (s)", "End Time (s)", "Low Freq (Hz)", "High Freq (Hz)"
FILE_COLUMNS = ("Begin File", "Filename", "File", "Begin Path")
LABEL_COLUMNS = ("Species Code", "Species eBird Code", "Species", "Annotation", "Label", "Common Name")
SELECTIONS = {
    "file": pl.String,
    "start_s": pl.Float64,
    "end_s": pl.Float64,
    "low_hz": pl.Float64,
    "high_hz": pl.Float64,
    "label": pl.String,
    "common_name": pl.String,
    "score": pl.Float64,
}
# What a selection covers where nobody says: the band BirdNET listens to.
WHOLE_BAND_HZ = (150.0, 15_000.0)


def read_selections(path: Path) -> pl.DataFrame:
    """Reads a selection table.

    Returns:
        One row per selection with the columns of `SELECTIONS`; nulls where the table does not say.

    Raises:
        InputError: When the file is not a selection table, or a time is no number.
    """
    try:
        return parse_selections(path.read_bytes(), path)
    except FileNotFoundError as error:
        raise InputError(path, found="no such file", expected="a selection table of Raven") from error


def parse_selections(data: bytes, where: object) -> pl.DataFrame:
    """The same from the bytes of a table; `where` is what to call it in messages."""
    separator = "\t" if b"\t" in data.partition(b"\n")[0] else ","
    rows = read_csv(io.BytesIO(data), where, required=(START, END), separator=separator)
    for name in (START, END, LOW, HIGH, "Confidence"):
        rows = parse_column(rows, name, float, where)
    rows = one_row_each(rows)
    label = next((name for name in LABEL_COLUMNS if name in rows.columns), None)
    if label is None:
        raise missing_column(where, LABEL_COLUMNS[0], rows.columns)
    file = next((name for name in FILE_COLUMNS if name in rows.columns), None)
    _refuse_backwards(rows, where)
    return rows.select(
        file=(pl.col(file) if file else pl.lit(None)).cast(pl.String),
        start_s=START,
        end_s=END,
        low_hz=pl.min_horizontal(LOW, HIGH),
        high_hz=pl.max_horizontal(LOW, HIGH),
        label=pl.col(label).str.strip_chars(),
        common_name=(pl.col("Common Name") if "Common Name" in rows.columns else pl.lit(None)).cast(pl.String),
        score="Confidence",
    )


def one_row_each(rows: pl.DataFrame) -> pl.DataFrame:
    """One row for each selection: the one of the spectrogram, where each view has one."""
    if "View" not in rows.columns or "Selection" not in rows.columns:
        return rows
    by_view = rows.with_columns(drawn=pl.col("View").str.starts_with("Spectrogram")).with_row_index("row")
    kept = by_view.sort("drawn", "row", descending=[True, False]).unique("Selection", keep="first")
    # Selections without a number are all kept: they cannot be told to be the same.
    kept = pl.concat([kept.drop_nulls("Selection"), by_view.filter(pl.col("Selection").is_null())])
    return kept.sort("row").drop("drawn", "row")


def _refuse_backwards(rows: pl.DataFrame, where: object) -> None:
    wrong = (rows[START].is_null() | rows[END].is_null() | (rows[END] < rows[START])).fill_null(True).arg_true()
    if len(wrong):
        row = int(wrong[0])
        found = f"a selection from {rows[START][row]} to {rows[END][row]} s"
        raise InputError(where, found=found, expected="one that ends after it begins")


def write_selections(path: Path, selections: pl.DataFrame) -> None:
    """Writes a selection table that Raven opens.

    Args:
        path: The file to write.
        selections: `start_s`, `end_s`, `label`, and any of the other columns of `SELECTIONS`. Where there are no
            frequencies, the whole band is written.
    """
    rows = selections.select(
        *(
            (pl.col(name) if name in selections.columns else pl.lit(None)).cast(kind).alias(name)
            for name, kind in SELECTIONS.items()
        )
    ).with_row_index("number", offset=1)
    low, high = WHOLE_BAND_HZ
    table = rows.select(
        pl.col("number").alias("Selection"),
        pl.lit("Spectrogram 1").alias("View"),
        pl.lit(1).alias("Channel"),
        pl.col("file").alias(FILE_COLUMNS[0]),
        pl.col("start_s").alias(START),
        pl.col("end_s").alias(END),
        pl.col("low_hz").fill_null(low).alias(LOW),
        pl.col("high_hz").fill_null(high).alias(HIGH),
        pl.col("label").alias("Species Code"),
        pl.col("common_name").alias("Common Name"),
        pl.col("score").alias("Confidence"),
    )
    with appearing_file(path) as partial:
        table.write_csv(partial, separator="\t")
