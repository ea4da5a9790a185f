"""The same table spelled otherwise scores the same: quotes, byte-order marks, line ends, spaces, gzip."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from fieldmark_tests.oracles.comparing import (
    TABLE_BENCHMARKS,
    differences,
    draw,
    report,
    score_case,
    score_files,
    values_of,
)
from fieldmark_tests.oracles.tables import Table

SEEDS = range(2000, 2002)
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# The header of places tells the format; that it may be quoted is in `test_refusals`.
PLAIN_HEADER = ("geolifeclef-2020",)


def quoted(field: str) -> str:
    doubled = field.replace('"', '""')
    return f'"{doubled}"'


def with_quotes(table: Table, *, header: bool = True) -> bytes:
    lines = [[quoted(field) for field in line] for line in table.lines()]
    if table.header and not header:
        lines[0] = list(table.columns)
    return "".join(f"{table.separator.join(line)}\n" for line in lines).encode()


def with_spaces(table: Table) -> bytes:
    lines = []
    for line in table.lines():
        fields = [quoted(field) if table.separator in field or '"' in field else field for field in line]
        lines.append(table.separator.join(f" {field}  " for field in fields))
    return "\n".join([*lines, ""]).encode()


def with_byte_order_mark(table: Table) -> bytes:
    return BYTE_ORDER_MARK + table.text().encode()


def with_windows_line_ends(table: Table) -> bytes:
    return table.text().replace("\n", "\r\n").encode()


def without_last_line_end(table: Table) -> bytes:
    return table.text().rstrip("\n").encode()


def with_empty_lines(table: Table) -> bytes:
    return table.text().replace("\n", "\n\n").encode() + b"\n\n"


def with_gzip(table: Table) -> bytes:
    return gzip.compress(table.text().encode())


def with_everything(table: Table) -> bytes:
    lines = with_spaces(table).replace(b"\n", b"\r\n\r\n")
    return gzip.compress(BYTE_ORDER_MARK + lines)


RUN_SPELLINGS = [
    with_quotes,
    with_spaces,
    with_byte_order_mark,
    with_windows_line_ends,
    without_last_line_end,
    with_empty_lines,
    with_gzip,
    with_everything,
]
TABLE_SPELLINGS = [with_quotes, with_byte_order_mark, with_windows_line_ends, without_last_line_end]


@pytest.mark.parametrize("benchmark", TABLE_BENCHMARKS)
def test_a_run_may_be_spelled_in_any_of_these_ways(benchmark: str, tmp_path: Path) -> None:
    wrong: list[str] = []
    for seed in SEEDS:
        case = draw(benchmark, seed)
        plain = values_of(score_case(case, tmp_path))
        for spelling in RUN_SPELLINGS:
            paths = case.write(tmp_path)
            if spelling is with_quotes:
                data = with_quotes(case.run, header=benchmark not in PLAIN_HEADER)
            else:
                data = spelling(case.run)
            paths["run"].write_bytes(data)
            lines = differences(values_of(score_files(benchmark, paths)), plain)
            wrong += report(benchmark, seed, [f"{spelling.__name__}: {line}" for line in lines])
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("spelling", TABLE_SPELLINGS)
@pytest.mark.parametrize(
    "benchmark", ["folder", "fungitastic/cost-poison", "plantclef-2020", "birdclef-2020", "snakeclef-2020"]
)
def test_truth_classes_and_media_may_be_spelled_in_any_of_these_ways(
    benchmark: str, spelling: Callable[[Table], bytes], tmp_path: Path
) -> None:
    wrong: list[str] = []
    for seed in SEEDS:
        case = draw(benchmark, seed)
        plain = values_of(score_case(case, tmp_path))
        paths = case.write(tmp_path)
        for name, table in case.tables().items():
            # The truth of soundscapes has no quotes, as the organizers write it.
            if name != "run" and not (spelling is with_quotes and not table.header):
                paths[name].write_bytes(spelling(table))
        wrong += report(benchmark, seed, differences(values_of(score_files(benchmark, paths)), plain))
    assert not wrong, "\n".join(wrong)
