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
TRACKERS = ("tensorboard", "mlflow")


class Log:
    """Writes one JSON object per line; each has the `step` it belongs to."""

    def __init__(self, folder: Path, how: Training) -> None:
        self.path = folder / LOG_FILE
        self._trackers = [_tracker(name, folder, how) for name in how.trackers.replace(" ", "").split(",") if name]

    def keep_until(self, step: int) -> None:
        """Drops the lines after a step: they belong to work that is about to be done again."""
        if self.path.exists():
            lines = [line for line in self.path.read_text().splitlines() if json.loads(line)["step"] <= step]
            self.path.write_text("".join(f"{line}\n" for line in lines))

    def write(self, step: int, **values: Any) -> None:
        """Adds a line."""
        with self.path.open("a") as file:
            file.write(json.dumps({"step": step, **values}) + "\n")
        numbers = {key: value for key, value in _flat(values).items() if isinstance(value, int | float)}
        for tracker in self._trackers:
            tracker(step, numbers)

    def read(self) -> list[dict[str, Any]]:
        """All lines so far."""
        return [json.loads(line) for line in self.path.read_text().splitlines()] if self.path.exists() else []


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in values.items():
        flat |= _flat(value, f"{prefix}{key}/") if isinstance(value, dict) else {prefix + key: value}
    return flat


def _tracker(name: str, folder: Path, how: Training) -> Any:
    if name == "tensorboard":
        module: Any = require("torch.utils.tensorboard", "trackers=tensorboard")
        writer = module.SummaryWriter(str(folder / "tensorboard"))

        def to_tensorboard(step: int, numbers: dict[str, float]) -> None:
            for key, value in numbers.items():
                writer.add_scalar(key, value, step)
            writer.flush()

        return to_tensorboard
    if name == "mlflow":
        mlflow: Any = require("mlflow", "trackers=mlflow")
        if mlflow.active_run() is None:
            mlflow.start_run()
        mlflow.log_params(asdict(how))
        return lambda step, numbers: mlflow.log_metrics(
            {key.replace("/", "."): value for key, value in numbers.items()}, step=step
        )
    raise MisuseError(f"There is no tracker called {name!r}. {did_you_mean(name, TRACKERS)}")
