"""How help is grouped: commands by what they are for, options that few people need below the others."""

from __future__ import annotations

from typing import Any

# The panels of `fieldmark --help` from top to bottom, each with its commands in order.
COMMANDS = {
    "Start here": ("fit", "report", "identify", "demo", "list"),
    "Data": ("get", "check", "split", "truth", "world", "cite", "names"),
    "Models": (
        "predict",
        "adapt",
        "calibrate",
        "ensemble",
        "export",
        "models",
        "backbones",
        "detector",
        "encoder",
        "search",
        "tile",
        "species-at",
        "review",
        "app",
    ),
    "Scores": ("score", "compare", "suite", "reproduce", "ablate", "episodes", "foreground", "detections"),
    "Challenges": ("challenge", "serve", "worker", "submit"),
}
# By command: options, by the names of their parameters, that are shown in panels of their own.
OPTIONS = {
    "fit": {
        "Tuning": ("search", "folds", "folds_by", "pooling", "seed"),
        "Declarations": ("external_data", "extra_annotations"),
        "Clusters and untrusted code": ("engine", "address", "walled", "trust_code"),
    },
    "identify": {
        "Place, date and habitat": ("lat", "lon", "date", "site", "country", "habitat", "substrate", "exif"),
        "Names": ("only", "exclude", "synonyms", "common_names", "checklist"),
        "Output": ("form", "out", "html", "overlay", "each_window", "time_zone", "as_json"),
        "Thresholds": ("at_least", "thresholds", "calibration", "pooling"),
        "Web page": ("serve", "host", "port", "keep_in", "identify_seconds", "identify_questions"),
        "Clusters and untrusted code": ("engine", "address", "trust_code"),
    },
}
FURTHER = "More"
ORDER = [name for names in COMMANDS.values() for name in names]
_PANEL = {name: panel for panel, names in COMMANDS.items() for name in names}


def in_order(names: list[str]) -> list[str]:
    """Commands as the panels list them; those that no panel names come last."""
    return sorted(names, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))


def assign(command: Any, name: str) -> None:
    """Puts a command of the command line, and its options, into their panels."""
    command.rich_help_panel = _PANEL.get(name, FURTHER)
    panels = {option: panel for panel, options in OPTIONS.get(name, {}).items() for option in options}
    for option in command.params:
        if option.name in panels:
            option.rich_help_panel = panels[option.name]
