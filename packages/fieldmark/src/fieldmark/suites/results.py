"""The results of suites: one small JSON file per model and cell, readable without Fieldmark.

```
RESULTS/
  birds/efficientnet_lite0-lda.3f9c0a….json    the cell; the model, and the address of all that the result rests on
```

| key | what |
|---|---|
| `fieldmark_result` | the version of this format |
| `suite`, `suite_version`, `cell`, `metric` | what was asked, and the metric by which it counts |
| `model` | `name`, `method`, `settings`, `steps` |
| `content`, `address` | all that the score depends on (version, data digest, all settings, protocol, seed) |
| `scorecard` | every metric with its interval and its conventions |
| `values_per_unit` | one pseudo-value per independent unit under `metric`: their spread over n is its error |
| `units` | a fingerprint of the units and their order: values of two files pair where it is the same |
| `provenance` | what made it: code version, features with the digest of the network, external data, remarks |
| `strengths` | right answers by species (worst first) and group, and calibration (`suites.strengths`), or null |
| `cost` | seconds by phase, memory, parameters, features, speed beside that of a reference; of one machine |
| `digest` | a fingerprint of everything above but `cost` and `strengths` |

A folder of such files can lie in a git repository or a bucket; those of several machines are merged by name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.errors import InputError
from fieldmark.fitting.configuration import configured_method
from fieldmark.methods import METHODS
from fieldmark.scoring import Score, Scorecard
from fieldmark.scoring.scorecard import scores_of
from fieldmark.storage.addresses import file_system, missing, place_text, reaching
from fieldmark.storage.files import write_text
from fieldmark.suites.catalog import SUITES
from fieldmark.tables.inputs import PHOTO_INPUT
from fieldmark.work.grid import address_of

FORMAT = 1
MARK = "fieldmark_result"
# Digits of values per unit: their errors are of the order of 1e-2, and files stay small.
DIGITS = 7


@dataclass(frozen=True)
class SuiteResult:
    """One result, as its file has it."""

    data: Mapping[str, Any]
    where: str

    @property
    def model(self) -> str:
        return str(self.data["model"]["name"])

    @property
    def cell(self) -> str:
        return str(self.data["cell"])

    @property
    def score(self) -> Score:
        """The score under the metric of the cell."""
        return scores_of(self.data["scorecard"]["metrics"])[self.data["metric"]]

    @property
    def scored(self) -> tuple[Any, ...]:
        """All scores with the units behind them. The digest also holds what was fitted, such as a temperature."""
        return self.data["scorecard"]["metrics"], self.data["values_per_unit"], self.data["units"]

    @property
    def simulated(self) -> bool:
        return bool(self.data["scorecard"]["provenance"].get("simulated"))

    @property
    def strengths(self) -> Mapping[str, Any] | None:
        """What the model is good at in the cell; None in earlier files, and where items may have several labels."""
        found: Mapping[str, Any] | None = self.data.get("strengths")
        return found

    @property
    def values_per_unit(self) -> NDArray[np.float64] | None:
        values = self.data["values_per_unit"]
        return None if values is None else np.array(values, dtype=np.float64)

    @property
    def file(self) -> str:
        """Where it lies in a folder of results."""
        return file_of(self.cell, self.model, str(self.data["address"]))


def file_of(cell: str, model: str, address: str) -> str:
    """The path of a result in a folder of results.

    >>> file_of("birds", "efficientnet_lite0 lda", "3f9c0a")
    'birds/efficientnet_lite0-lda.3f9c0a.json'
    """
    return f"{cell}/{re.sub(r'[^A-Za-z0-9_=+-]+', '-', model).strip('-')[:80]}.{address}.json"


def result_data(
    about: Mapping[str, Any],
    card: Scorecard,
    metric: str,
    provenance: Mapping[str, Any],
    cost: Mapping[str, Any],
    strengths: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A result as plain data.

    Args:
        about: Suite, cell, model and content.
        card: The score.
        metric: By which the cell counts.
        provenance: What made it.
        cost: What it took.
        strengths: What the model is good at, where answers have one label.
    """
    pseudo = card.pseudo.get(metric)
    values = None if pseudo is None else [float(f"{value:.{DIGITS}g}") for value in pseudo]
    data = {
        MARK: FORMAT,
        **about,
        "metric": metric,
        "scorecard": card.to_json(),
        "values_per_unit": values,
        "units": address_of(list(card.unit_ids)),
        "provenance": dict(provenance),
        "strengths": strengths,
        "cost": dict(cost),
    }
    return {**data, "digest": digest_of(data)}


def digest_of(data: Mapping[str, Any]) -> str:
    """The fingerprint of a result without what it took, when it was made, and what earlier files did not have."""
    kept = {key: value for key, value in data.items() if key not in ("cost", "digest", "strengths")}
    kept["provenance"] = {key: value for key, value in data["provenance"].items() if key != "created"}
    return address_of(json.loads(json.dumps(kept)), 16)


def write_result(path: Path, data: Mapping[str, Any]) -> None:
    """Writes a result, one key per line."""
    lines = (f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in data.items())
    write_text(path, "{\n" + ",\n".join(lines) + "\n}\n")


def read_results(places: Iterable[str | Path]) -> list[SuiteResult]:
    """All results in folders or at addresses, each address of content once.

    Raises:
        InputError: For a place that is not there, a file that is no result, and for two that tell different scores of
            the same content.
    """
    results: dict[str, SuiteResult] = {}
    for place in places:
        for where, text in _files(place):
            result = _parsed(where, text)
            before = results.setdefault(result.file, result)
            if before.scored != result.scored:
                hint = "One of the two was changed, or made by other code or another engine: run it again, keep that."
                expected = f"the same result as in {before.where}, which has the same address"
                raise InputError(where, found="another score of the same content", expected=expected, hint=hint)
    return sorted(results.values(), key=lambda one: one.file)


def merge_results(out: Path, places: Sequence[str | Path]) -> int:
    """Writes the results of several places into one folder, beside what is there; returns how many there are then."""
    results = read_results([*([out] if out.exists() else []), *places])
    for result in results:
        if not (out / result.file).exists():
            write_result(out / result.file, result.data)
    return len(results)


def check_results(results: Sequence[SuiteResult]) -> list[str]:
    """What is wrong with results, a sentence each: digests, versions, defaults, external data, other units."""
    problems = []
    units: dict[tuple[str, str], str] = {}
    for result in results:
        data, where = result.data, result.where
        if digest_of(data) != data["digest"]:
            problems.append(f"{where}: the digest is not that of the content: the file was changed after it was made.")
        if address_of(data["content"]) != data["address"]:
            problems.append(f"{where}: the address is not that of what the result says it rests on.")
        benchmark, version = data["content"]["benchmark"], data["content"]["version"]
        if benchmark in BENCHMARKS and BENCHMARKS[benchmark].version != version:
            now = BENCHMARKS[benchmark].version
            problems.append(f"{where}: {benchmark} is version {version} here and {now} today: run the cell again.")
        changed = _changed_options(data)
        if changed:
            problems.append(f"{where}: {data['content']['method']} has another default today: {changed}. Run it again.")
        suite = SUITES.get(data["suite"])
        if suite is not None and suite.version != data["suite_version"]:
            problems.append(
                f"{where}: suite {suite.name} is version {data['suite_version']} here and {suite.version} today."
            )
        if data["provenance"].get("external_data") is None:
            problems.append(f"{where}: nobody has declared what external data went in.")
        key = result.cell, data["content"]["data_digest"]
        if units.setdefault(key, data["units"]) != data["units"]:
            problems.append(f"{where}: scored on other units than the other results of {result.cell}.")
    return problems


def options_of(method: str, settings: Mapping[str, Any]) -> dict[str, str]:
    """All settings of a method as text, those that were not given as well, before a release settles any.

    What it usually takes of photos is among them, as `features.output`.
    """
    made = configured_method(method, settings).method
    usual = made.usual_features(str(settings.get("backbone", PHOTO_INPUT.extractor)))
    features = {f"features.{key}": value for key, value in usual.items() if key not in settings}
    return {key: str(value) for key, value in sorted({**made.options, **features}.items())}


def _changed_options(data: Mapping[str, Any]) -> str:
    """The settings of a method that were others when a result was made, where the result says so."""
    before, method = data["content"].get("options"), data["content"]["method"]
    if before is None or method not in METHODS:
        return ""
    now = options_of(method, data["model"]["settings"])
    names = sorted(name for name in {*before, *now} if before.get(name) != now.get(name))
    return ", ".join(f"{name} was {before.get(name, 'not there')}, is {now.get(name, 'not there')}" for name in names)


def _files(place: str | Path) -> Iterator[tuple[str, str]]:
    """The files of results under a place, with their text."""
    system, root = file_system(place)
    with reaching(place):
        if not system.exists(root):
            raise missing(place, "a folder of results (`fieldmark suite run`)")
        for path in sorted(system.find(root)):
            name = path.rpartition("/")[2]
            if name.endswith(".json") and not name.startswith("."):
                below = path[len(root) :].lstrip("/")
                shown = f"{place_text(place).rstrip('/')}/{below}" if below else place_text(place)
                yield shown, system.cat_file(path).decode("utf-8", "replace")


def _parsed(where: str, text: str) -> SuiteResult:
    try:
        data = json.loads(text)
        if data[MARK] > FORMAT:
            raise InputError(
                where, found=f"format {data[MARK]}", expected=f"at most {FORMAT}", hint="Use a later Fieldmark."
            )
        result = SuiteResult(data, where)
        _ = (result.model, result.file, result.score, data["values_per_unit"], data["units"], data["digest"])
        _ = (data["suite"], data["suite_version"], data["content"]["data_digest"], data["provenance"], data["cost"])
        return result
    except (ValueError, KeyError, TypeError) as error:
        found = f"something else ({type(error).__name__}: {error})"
        hint = "Keep other files out of the folder of results."
        raise InputError(where, found=found, expected="the result of a suite", hint=hint) from error
