"""A model as the code submission that SnakeCLEF 2020 asked for, and what runs inside it.

```
OUT/
  run.sh             the entry point: finds a Python with the requirements, and runs run.py
  run.py             reads the three variables, answers, writes the predictions
  aicrowd.json       what the platform wants to know
  requirements.txt   what to install; runtime.txt says for which Python
  model/             the model
  fieldmark/         the code, as it was when the model was exported
```

The platform starts `run.sh` with three variables: AICROWD_TEST_IMAGES_PATH (a folder with `<hashed_id>.jpg`),
AICROWD_TEST_METADATA_PATH (a CSV with `hashed_id,country,continent`), AICROWD_PREDICTIONS_OUTPUT_PATH (the CSV to
write: `hashed_id` and a probability for each class). Nothing else is read from the environment.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.resources import as_file, files
from pathlib import Path

import polars as pl

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.errors import InputError, MisuseError
from fieldmark.features.crops import GIVEN
from fieldmark.models import Model, load_model
from fieldmark.releases.snakeclef.metadata import metadata_table
from fieldmark.releases.snakeclef.photos import NAME_2020
from fieldmark.storage.files import appearing_folder, write_json
from fieldmark.storage.release import Release
from fieldmark.tables.inputs import MediaFiles
from fieldmark.tables.media import PHOTO
from fieldmark.tables.schema import ITEMS
from fieldmark.views.parts import Part

IMAGES, METADATA, OUTPUT = (f"AICROWD_{name}_PATH" for name in ("TEST_IMAGES", "TEST_METADATA", "PREDICTIONS_OUTPUT"))
CHALLENGE = "snake-species-identification-challenge"
ENDINGS = (".jpg", ".jpeg", ".png", ".JPG")
# What a model of photos needs besides the core; each is asked for where it is installed here.
EXTRAS = ("vision", "saliency")

RUN_SH = """#!/usr/bin/env bash
# Takes the first Python that has what requirements.txt names; PYTHON may name one.
set -euo pipefail
here="$(cd "$(dirname "${{BASH_SOURCE[0]}}")" && pwd)"
for python in "${{PYTHON:-}}" python3 python {python}; do
  if [ -n "$python" ] && "$python" -c "import numpy, polars, safetensors" 2>/dev/null; then
    exec "$python" "$here/run.py"
  fi
done
echo "run.sh: found no Python with numpy, polars and safetensors; run: pip install -r $here/requirements.txt" >&2
exit 1
"""
RUN_PY = '''"""Answers the photos of AICROWD_TEST_IMAGES_PATH; see README.md of the model."""

import os
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

with tempfile.TemporaryDirectory() as cache:
    os.environ["FIELDMARK_CACHE"] = cache  # the home folder may be missing or read-only
    from fieldmark.exporting.code_submission import main

    sys.exit(main(HERE / "model", os.environ))
'''


@dataclass(frozen=True)
class WrittenSubmission:
    """What was written: the folder, how many classes a prediction has, and how many packages it asks for."""

    folder: str
    classes: int
    requirements: int


def export_submission(model: str | Path, out: Path, *, author: str = "", overwrite: bool = False) -> WrittenSubmission:
    """Writes the folder of a code submission.

    Args:
        model: The folder of a model, or of the run that made it.
        out: The folder to write; it appears when complete.
        author: Who submits, for the platform.
        overwrite: Whether an existing folder is replaced.

    Raises:
        MisuseError: When the model answers another benchmark, or needs boxes or masks that no test photo comes with.
    """
    loaded = load_model(model)
    _refuse_unfit(loaded)
    needed = requirements(loaded)
    with appearing_folder(out, overwrite=overwrite) as folder:
        loaded.save(folder / "model")
        with as_file(files("fieldmark")) as package:
            shutil.copytree(package, folder / "fieldmark", ignore=shutil.ignore_patterns("__pycache__", "challenge"))
        (folder / "run.py").write_text(RUN_PY, encoding="utf-8")
        script = folder / "run.sh"
        script.write_text(RUN_SH.format(python=_quoted(sys.executable)), encoding="utf-8")
        script.chmod(0o755)
        (folder / "requirements.txt").write_text("\n".join(needed) + "\n", encoding="utf-8")
        major, minor = sys.version_info[:2]
        (folder / "runtime.txt").write_text(f"python-{major}.{minor}\n", encoding="utf-8")
        about = {"challenge_id": CHALLENGE, "grader_id": CHALLENGE, "authors": [author or "aicrowd-user"]}
        write_json(folder / "aicrowd.json", {**about, "description": f"Fieldmark: {loaded.name}", "debug": False})
    return WrittenSubmission(str(out), len(loaded.labels), len(needed))


def _refuse_unfit(model: Model) -> None:
    benchmark = str(model.trained.get("benchmark", ""))
    if benchmark != NAME_2020:
        raise MisuseError(f"The model answers {benchmark or 'no benchmark'}, and the submission is one of {NAME_2020}.")
    crops = {settings.crop for settings in model.features.values()} | {getattr(model.fitted.method, "crop", "")}
    given = sorted(crops & set(GIVEN))
    if given:
        hint = "Fit it with a finder (saliency, sam, yolox), or without crops."
        raise MisuseError(f"The model crops by {given[0]}, and the photos of the test come without any. {hint}")


def requirements(model: Model) -> list[str]:
    """The packages that a model needs, with the versions that are installed here."""
    names: list[str] = []
    for line in requires("fieldmark") or []:
        extra = re.search(r"extra\s*==\s*['\"]([^'\"]+)['\"]", line)
        if extra is None or (extra.group(1) in EXTRAS and model.features):
            names += re.findall(r"^[A-Za-z0-9._-]+", line)
    pinned = []
    for name in dict.fromkeys(names):
        try:
            pinned.append(f"{name}=={version(name)}")
        except PackageNotFoundError:
            continue
    return sorted(pinned)


def _quoted(path: str) -> str:
    return "'" + path.replace("'", "'\\''") + "'"


def answer_submission(model: str | Path, images: Path, metadata: Path, output: Path) -> int:
    """Answers the photos that a table of metadata lists, and writes the predictions; returns how many.

    Raises:
        InputError: When the table has no ids, or a photo is not there.
    """
    loaded = load_model(model)
    part = submitted_part(images, metadata)
    predictions = loaded.predict(part)
    output.parent.mkdir(parents=True, exist_ok=True)
    BENCHMARKS[NAME_2020].task.run.write(output, predictions)
    return len(part)


def submitted_part(images: Path, metadata: Path) -> Part:
    """The photos that a table of metadata lists, with their places."""
    if not metadata.is_file():
        raise InputError(metadata, found="no such file", expected=f"the table that {METADATA} names")
    if not images.is_dir():
        raise InputError(images, found="no such folder", expected=f"the photos that {IMAGES} names")
    table = metadata_table(Release(metadata.parent), metadata.name)
    if table is None:
        header = "no column 'hashed_id', or none of 'country'"
        raise InputError(metadata, line=1, found=header, expected="hashed_id,country,continent")
    rows = table.rows
    path_of = {}
    for line, media_id in rows.select("line", "media_id").iter_rows():
        names = [f"{media_id}{ending}" for ending in ENDINGS if (images / f"{media_id}{ending}").is_file()]
        if not names:
            expected = f"a photo {images}/{media_id}.jpg"
            raise InputError(metadata, line=line, found=f"the id {media_id!r}", expected=expected)
        path_of[media_id] = names[0]
    items = rows.select(pl.col("media_id").alias("item_id"), "country", "continent").with_columns(
        observation_id="item_id", media_ids=pl.concat_list("item_id")
    )
    return Part(ITEMS.check(items, "photos"), media=MediaFiles(PHOTO, Release(images), path_of))


def main(model: Path, environment: Mapping[str, str]) -> int:
    """What `run.py` does; returns the exit code."""
    absent = [name for name in (IMAGES, METADATA, OUTPUT) if not environment.get(name)]
    if absent:
        print(f"run.sh: found no {absent[0]}, expected {IMAGES}, {METADATA} and {OUTPUT}.", file=sys.stderr)
        return 2
    try:
        answered = answer_submission(model, *(Path(environment[name]) for name in (IMAGES, METADATA, OUTPUT)))
    except (InputError, MisuseError) as error:
        print(f"run.sh: {error}", file=sys.stderr)
        return error.exit_code
    print(json.dumps({"answered": answered, "predictions": environment[OUTPUT]}))
    return 0
