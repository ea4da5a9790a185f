"""Programs that participants might submit."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

HONEST = """
import csv, os
with open(os.environ["AICROWD_TEST_METADATA_PATH"]) as source:
    items = [row["hashed_id"] for row in csv.DictReader(source)]
images = os.environ["AICROWD_TEST_IMAGES_PATH"]
with open(os.environ["AICROWD_PREDICTIONS_OUTPUT_PATH"], "w") as sink:
    sink.write("id,predicted\\n")
    for item in items:
        sink.write(f"{item},{open(os.path.join(images, item + '.jpg')).read().strip()}\\n")
"""


def archive_of(program: str, *, name: str = "run.py", **more: str) -> bytes:
    """A tar archive with `run.sh`, which runs a Python program."""
    files = {"run.sh": f'exec "$PYTHON" {name}', name: program, **more}
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w:gz") as archive:
        for path, content in files.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(content.encode())
            archive.addfile(entry, io.BytesIO(content.encode()))
    return sink.getvalue()


def inputs_in(folder: Path, items: list[str], answers: list[str]) -> Path:
    """Inputs whose "photos" say what they show, so that a program can be right."""
    (folder / "images").mkdir(parents=True)
    rows = [f"{item},Peru,South America" for item in items]
    (folder / "metadata.csv").write_text("\n".join(["hashed_id,country,continent", *rows]) + "\n")
    for item, answer in zip(items, answers, strict=True):
        (folder / "images" / f"{item}.jpg").write_text(answer)
    return folder
