"""The log of a training: JSON lines always, TensorBoard and MLflow where a recipe asks for them."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fieldmark.errors import MisuseError, did_you_mean
from fieldmark.registry import require
from fieldmark.training.recipe import Training

LOG_FILE = "log.jsonl"


class Log:
    """Writes one JSON object per line; each has the `step` it belongs to."""

    def __init__(self, folder: Path, how: Training) -> None:
        self.path = folder / LOG_FILE
        self._trackers = [_tracker(name, folder, how) for name in how.trackers.replace(" ", "").split(",") if name]

    def keep_until(self, step: int) -> None:
        """Drops the lines after a step: they belong to work that is about to be done again."""
        if self.path.exists():
            kept = [line for line in self.read() if line["step"] <= step]
            self.path.write_text("".join(json.dumps(line) + "\n" for line in kept))

    def write(self, step: int, **values: Any) -> None:
        """Adds a line."""
        with self.path.open("a") as file:
            file.write(json.dumps({"step": step, **values}) + "\n")
        numbers = {key: value for key, value in _flat(values).items() if isinstance(value, int | float)}
        for tracker in self._trackers:
            tracker.write(step, numbers)

    def read(self) -> list[dict[str, Any]]:
        """All lines so far; one that was cut off in the middle does not count."""
        text = self.path.read_text() if self.path.exists() else ""
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]

    def close(self) -> None:
        """Ends what trackers have begun."""
        for tracker in self._trackers:
            tracker.close()


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in values.items():
        flat |= _flat(value, f"{prefix}{key}/") if isinstance(value, dict) else {prefix + key: value}
    return flat


def _tracker(name: str, folder: Path, how: Training) -> Any:
    if name not in _TRACKERS:
        raise MisuseError(f"There is no tracker called {name!r}. {did_you_mean(name, _TRACKERS)}")
    return _TRACKERS[name](folder, how)


class _TensorBoard:
    """Event files beside the log."""

    def __init__(self, folder: Path, how: Training) -> None:
        require("tensorboard", "trackers=tensorboard")
        module: Any = require("torch.utils.tensorboard", "trackers=tensorboard")
        self.writer = module.SummaryWriter(str(folder / "tensorboard"))

    def write(self, step: int, numbers: dict[str, float]) -> None:
        for key, value in numbers.items():
            self.writer.add_scalar(key, value, step)
        self.writer.flush()

    def close(self) -> None:
        self.writer.close()


class _MLflow:
    """A run of MLflow; a training that goes on goes on with its run."""

    def __init__(self, folder: Path, how: Training) -> None:
        mlflow: Any = require("mlflow", "trackers=mlflow")
        self.mlflow, run_file = mlflow, folder / "mlflow-run"
        run = mlflow.start_run(run_id=run_file.read_text() if run_file.exists() else None, nested=True)
        if not run_file.exists():
            run_file.write_text(run.info.run_id)
            mlflow.log_params(asdict(how))

    def write(self, step: int, numbers: dict[str, float]) -> None:
        self.mlflow.log_metrics({key.replace("/", "."): value for key, value in numbers.items()}, step=step)

    def close(self) -> None:
        self.mlflow.end_run()


_TRACKERS: dict[str, Any] = {"tensorboard": _TensorBoard, "mlflow": _MLflow}
