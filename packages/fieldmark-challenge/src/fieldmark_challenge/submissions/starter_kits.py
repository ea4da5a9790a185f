"""The starter kit of a challenge: an archive with a sample run, a baseline in ten lines, a notebook and commands."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from io import BytesIO
from typing import Any

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.runs.ranked import Ranked
from fieldmark_challenge.records.schema import Challenge
from fieldmark_challenge.records.storage import Storage

# Larger files are left out and named: they are available from the data page one by one.
LARGEST_BYTES = 20 << 20
# The same for every kit: what is handed out tells nothing by its times.
THEN = (2000, 1, 1, 0, 0, 0)
RANKED_BASELINE = '''"""A baseline in ten lines: one guess for all items. Put your model in its place."""
import csv, random

header, *rows = csv.reader(open("{sample}", newline=""))
labels = [row[0] for row in list(csv.reader(open("labels.csv", newline="")))[1:]]
guess = random.Random(0).sample(labels, min({most}, len(labels)))
with open("run.csv", "w", newline="") as file:
    writer = csv.writer(file)
    writer.writerow(header)
    writer.writerows([row[0], {separator!r}.join(guess), *row[2:]] for row in rows)
'''
OTHER_BASELINE = '''"""A baseline: the sample run as it is. Put the answers of your model in its place."""
import shutil

shutil.copyfile("{sample}", "{run}")
'''


RUN_SH = """#!/usr/bin/env bash
# Started by the platform. PYTHON names a Python with numpy and polars there; what else you need, you bring along.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
exec "${PYTHON:-python3}" run.py
"""
RUN_PY = '''"""Answers every photo in the same way, as example.csv does. Put your model in its place."""
import csv, os

images = os.environ["AICROWD_TEST_IMAGES_PATH"]  # a folder with <hashed_id>.jpg
header, answer = list(csv.reader(open("example.csv", newline="")))[:2]
with open(os.environ["AICROWD_TEST_METADATA_PATH"], newline="") as file:
    items = [row["hashed_id"] for row in csv.DictReader(file)]
with open(os.environ["AICROWD_PREDICTIONS_OUTPUT_PATH"], "w", newline="") as file:
    writer = csv.writer(file)
    writer.writerow(header)
    writer.writerows([item, *answer[1:]] for item in items)
print(f"answered {len(items)} items, {len(os.listdir(images))} photos")
'''
LONGEST_EXAMPLE = 1 << 20
PROGRAM_README = """
A phase that requires programs takes `program/`: `run.sh` is started on photos that nobody sees, without a network, and
writes the run. Try it on the public sample first, which does not count and shows all output; then submit it:

    fieldmark submit {address} program --debug
    fieldmark submit {address} program --title 'first program'
"""


def starter_kit(challenge: Challenge, storage: Storage, address: str, *, program: bool = False) -> bytes:
    """The kit as a zip archive.

    Args:
        challenge: The challenge.
        storage: Where its files are kept.
        address: The address of its page.
        program: Whether a phase asks for programs: an example of one is included.
    """
    run = BENCHMARKS[challenge.versioned_benchmark].task.run
    sample = f"sample_{run.file_name}"
    offered = {file.name: file for file in challenge.files}
    kept = [name for name in (sample, "items.csv", "labels.csv") if name in offered]
    small = [name for name in kept if offered[name].size <= LARGEST_BYTES]
    values = {"sample": sample, "run": run.file_name}
    if isinstance(run, Ranked):
        baseline = RANKED_BASELINE.format(**values, most=max(run.at_least, 1), separator=run.separator)
    else:
        baseline = OTHER_BASELINE.format(**values)
    readme = _readme(challenge, address, run.file_name, [name for name in kept if name not in small])
    example = _example(storage, offered[sample].path) if program and sample in offered else {}
    if example:
        readme += PROGRAM_README.format(address=address)
    notebook = _notebook(challenge, baseline, run.file_name)
    texts = {"README.md": readme, "baseline.py": baseline, "notebook.ipynb": notebook}
    files = {name: b"".join(storage.chunks(offered[name].path)) for name in small}
    return _zipped({**{name: text.encode() for name, text in texts.items()}, **files, **example})


def _example(storage: Storage, path: str) -> dict[str, bytes]:
    """A program that answers in the format of the sample run; none where that is no table."""
    with storage.open(path) as file:
        lines = [file.readline(LONGEST_EXAMPLE) for _ in range(2)]
    if b"\0" in b"".join(lines) or not all(line.endswith(b"\n") for line in lines):
        return {}
    texts = {"run.sh": RUN_SH.encode(), "run.py": RUN_PY.encode(), "example.csv": b"".join(lines)}
    return {f"program/{name}": content for name, content in texts.items()}


def _readme(challenge: Challenge, address: str, run: str, left_out: list[str]) -> str:
    too_large = ""
    if left_out:
        too_large = f"\nToo large for this archive, available from {address}/data: {', '.join(left_out)}.\n"
    return f"""# {challenge.title}

{address}, benchmark `{challenge.benchmark}`.

- `sample_{run}`: a valid run with answers drawn at random
- `items.csv`, `labels.csv`: what has to be answered, and the labels there are
- `baseline.py`: writes `{run}`; put your model in its place
- `notebook.ipynb`: the same, cell by cell
{too_large}
    pip install 'fieldmark[server]'
    python baseline.py

Score a run on labels of your own (`id,label`), exactly as the board does:

    fieldmark score {challenge.versioned_benchmark} {run} --truth my-truth.csv --classes labels.csv

Submit it, with a token from your account page:

    export FIELDMARK_TOKEN=...
    fieldmark submit {address} {run} --title 'first try'
"""


def _notebook(challenge: Challenge, baseline: str, run: str) -> str:
    """The kit as a notebook: the baseline, a look at the run, and what to do with it."""
    look = f'open("{run}", "rb").read(80)'
    if run.endswith(".csv"):
        look = f'import polars as pl\n\npl.read_csv("{run}", n_rows=5)'
    score = (
        "# With labels of your own in my-truth.csv (id,label), scored as the board does:\n"
        "import fieldmark\n\n"
        f'# fieldmark.score("{challenge.versioned_benchmark}", "{run}", truth="my-truth.csv", classes="labels.csv")'
    )
    cells = [
        _cell("markdown", f"# {challenge.title}\n\nBenchmark `{challenge.benchmark}`. See README.md."),
        *(_cell("code", text) for text in (baseline, look, score)),
    ]
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return json.dumps({"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}, indent=1)


def _cell(kind: str, text: str) -> dict[str, Any]:
    cell: dict[str, Any] = {"cell_type": kind, "metadata": {}, "source": text.splitlines(keepends=True)}
    return cell if kind == "markdown" else {**cell, "outputs": [], "execution_count": None}


def _zipped(files: Mapping[str, bytes]) -> bytes:
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(f"starter-kit/{name}", THEN)
            entry.external_attr = (0o755 if name.endswith(".sh") else 0o644) << 16
            archive.writestr(entry, data, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()
