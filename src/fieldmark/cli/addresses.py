"""Addresses on the command line: which arguments take one, and the sentence for those that do not, before any work.

A release (`--data`) is read where it lies. Other inputs are fetched, outputs of one file are sent when they are
complete. Everything else is a local path.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fieldmark.errors import MisuseError
from fieldmark.foundation.addresses import is_address, place_text
from fieldmark.foundation.local_inputs import local_input

# Roots of releases, whatever the verb.
RELEASES = {"data"}
# By verb: what is read where it lies, what is fetched, and files that are sent when they are complete.
READ = {
    "check": {"root"},
    "fit": {"add"},
    "predict": {"model"},
    "report": {"runs"},
    "score": {"runs", "truth", "classes", "media"},
}
FETCHED = {
    "score": {"receipt", "parts"},
    "compare": {"runs"},
    "fit": {"split"},
    "predict": {"photos"},
    "species-at": {"model"},
    "tile": {"model", "photos"},
    "export snakeclef-2020": {"model"},
    "export darwin-core": {"run"},
    "submit": {"run"},
}
SENT = {
    "compare": {"markdown", "latex"},
    "export coco": {"out"},
    "export darwin-core": {"out"},
    "export onnx": {"out"},
    "export split": {"out"},
    "foreground": {"out"},
    "predict": {"out"},
    "report": {"out"},
    "split": {"out"},
    "tile": {"out"},
}
# What else is written, which appears all at once on a local disk alone.
OUTPUTS = {"out", "folder", "keep", "html", "overlay", "plot", "root"}
WRITE_HERE = "Write to this machine, and copy it afterwards."
COPY_FIRST = "Copy what lies there to this machine first."


def take_addresses(command: Any, verb: str) -> None:
    """Lets the paths of a command be addresses where that makes sense, and refuses them elsewhere.

    Args:
        command: As click knows it.
        verb: Its name, with that of its group in front of it.
    """
    for option in command.params:
        if option.callback is None:
            option.callback = _Taken(verb)


class _Taken:
    """What becomes of a path that is an address."""

    def __init__(self, verb: str) -> None:
        self.verb = verb

    def __call__(self, context: Any, option: Any, value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [self._one(option, one) for one in value]
        return self._one(option, value)

    def _one(self, option: Any, value: Any) -> Any:
        if not isinstance(value, Path) or not is_address(value):
            return value
        name = option.name
        if name in RELEASES | READ.get(self.verb, set()) | SENT.get(self.verb, set()):
            return value
        if name in FETCHED.get(self.verb, set()):
            return local_input(value)
        longest = max(option.opts, key=len)
        shown = longest if longest.startswith("-") else longest.upper()
        advice = WRITE_HERE if name in OUTPUTS else COPY_FIRST
        raise MisuseError(f"{shown} takes a local path, not {place_text(value)}. {advice}")
