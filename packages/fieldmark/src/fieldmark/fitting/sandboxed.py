"""Methods behind walls (`fit --walled`): a method of another package runs in a process that was given what it may see.

Plain Python keeps nothing from a program that looks for it: a method that walks the disk finds the folders of the test
photos. Behind walls there is no disk to walk and no network. The package is not even imported on this side: what the
method declares, learns and answers comes back as JSON, arrays and Parquet, never as something that would be run.

```
FOLDER/media/<id>          photos or recordings by opaque ids, all of one time; none for a method that reads features
       arrays.safetensors  what was learned
       answers.parquet     what was answered
```
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError

from fieldmark.errors import FieldmarkError, MisuseError
from fieldmark.fitting.configuration import Configured
from fieldmark.methods.base import Arrays, Fitted, Method, Need
from fieldmark.models.array_file import load_arrays
from fieldmark.runs.label_scores import Scale
from fieldmark.runs.predictions import read_predictions
from fieldmark.steps import STEPS, Step, step_from_data
from fieldmark.storage.addresses import is_address
from fieldmark.tables.inputs import Layer, MediaFiles, OwnLayer
from fieldmark.tables.labels import Labels
from fieldmark.views.parts import LooseFiles, Part, View

WALLED = "The method ran behind walls: it was given what it may see, and neither files nor a network besides."
JOB = "fieldmark.fitting.sandboxed_job"
ARRAYS, ANSWERS, MEDIA = "arrays.safetensors", "answers.parquet", "media"
LENGTH_BYTES = 8
TAIL = 3000
# What a method declares once and for all, and what follows from its settings.
DECLARED = (
    "sees",
    "learns_from",
    "targets",
    "wants_unknown",
    "feature_defaults",
    "second_order",
    "follows_from_task",
)
SETTLED = ("external_data", "license", "learns_from_val", "network_name", "chooses_on_val", "open_inputs", "scale")


@dataclass(frozen=True)
class Walls:
    """What stands around a process.

    Args:
        command: The words before the command of a process that may write to a folder and sees no other.
        environment: The variables of such a process.
    """

    command: Callable[[Path], list[str]]
    environment: Callable[[Path], dict[str, str]]


@dataclass(frozen=True)
class KeptLayer(Layer):
    """A layer of which nothing is left but what was read for some ids."""

    kept: Mapping[str, bytes | None]
    input: str  # type: ignore[misc]
    by: Any  # type: ignore[misc]

    def read(self, ids: Sequence[str]) -> list[bytes | None]:
        return [self.kept[one] for one in ids]

    files = read


class Inmate:
    """A process behind walls that is asked one thing after the other; it starts when the first is asked.

    It owns the folder that it sees. Nothing there is trusted: files are made and taken without following links.
    """

    def __init__(self, walls: Walls) -> None:
        self.walls = walls
        self._process: subprocess.Popen[bytes] | None = None
        self._open = ExitStack()

    def again(self) -> Inmate:
        """Another one behind the same walls, which knows nothing of what this one was asked."""
        return Inmate(self.walls)

    def ask(self, what: str, *, media: bool = False, **given: Any) -> dict[str, Any]:
        """What the process replies.

        Args:
            what: The name of a function of `walled_job`.
            media: Whether the media of parts are handed over as well.
            given: What the function takes.

        Raises:
            FieldmarkError: What the method refuses.
            MisuseError: When it fails.
        """
        process = self._running()
        assert process.stdin is not None and process.stdout is not None
        request = pickle.dumps((what, {name: self._shown(value, media) for name, value in given.items()}))
        try:
            process.stdin.write(len(request).to_bytes(LENGTH_BYTES, "big") + request)
            process.stdin.flush()
            reply = json.loads(process.stdout.readline())
        except (OSError, ValueError) as error:
            raise MisuseError(f"The method ended behind its walls. Its last words: {self._last_words()}") from error
        if "refused" in reply:
            kind = MisuseError if reply["misuse"] else FieldmarkError
            raise kind(str(reply["refused"]))
        if "failed" in reply:
            raise MisuseError(f"The method failed behind its walls: {str(reply['failed'])[-TAIL:]}")
        return dict(reply)

    def arrays(self) -> Arrays:
        """The arrays of the last reply."""
        with self._fetched(ARRAYS) as path:
            try:
                return {name: np.array(array) for name, array in load_arrays(path).items()}
            except (SafetensorError, ValueError, KeyError) as error:
                raise MisuseError(f"The method wrote no arrays that can be read: {error}.") from error

    def answers(self) -> Any:
        """The predictions of the last reply."""
        with self._fetched(ANSWERS) as path:
            return read_predictions(path)

    def close(self) -> None:
        """Ends the process and removes its folder."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None
        self._open.close()

    __del__ = close

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is None:
            return self._process
        self.close()
        self._folder = Path(self._open.enter_context(tempfile.TemporaryDirectory(prefix="fieldmark-walled-")))
        (self._folder / MEDIA).mkdir()
        self._places = [os.open(place, os.O_RDONLY | os.O_DIRECTORY) for place in (self._folder, self._folder / MEDIA)]
        for place in self._places:
            self._open.callback(os.close, place)
        self._log = self._open.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
        self._given = set[str]()
        # All that packages are imported from here; the walls show no more of it than they do of the machine.
        paths = [entry for entry in sys.path if entry]
        self._process = subprocess.Popen(
            [*self.walls.command(self._folder), sys.executable, "-m", JOB, str(self._folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env={**self.walls.environment(self._folder), "PYTHONPATH": os.pathsep.join(paths)},
            cwd=self._folder,
        )
        return self._process

    @contextmanager
    def _fetched(self, name: str) -> Iterator[Path]:
        """A copy of a file that the process wrote: a plain one, not a link to what it cannot read itself."""
        try:
            number = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=self._places[0])
        except OSError as error:
            raise MisuseError(f"The method wrote no {name}. Its last words: {self._last_words()}") from error
        with os.fdopen(number, "rb") as file, tempfile.TemporaryDirectory(prefix="fieldmark-") as folder:
            if not stat.S_ISREG(os.fstat(number).st_mode):
                raise MisuseError(f"The method wrote no {name}, but something that is no file.")
            with (Path(folder) / name).open("wb") as copy:
                shutil.copyfileobj(file, copy)
            yield Path(folder) / name

    def _last_words(self) -> str:
        self._log.seek(0)
        return self._log.read()[-TAIL:].decode("utf-8", "replace").strip() or "none"

    def _shown(self, value: Any, media: bool) -> Any:
        """Parts with their media and layers as plain files and values."""
        if isinstance(value, View):
            parts = {name: getattr(value, name) for name in ("train", "val", "unlabeled", "test")}
            shown = {name: self._shown(part, media) for name, part in parts.items()}
            return replace(value, **shown, scratch=None, shared=None)
        if not isinstance(value, Part):
            return value
        if not media:
            return replace(value, media=None, layers={})
        ids: dict[str, list[str]] = {
            "media_id": value.items["media_ids"].explode().drop_nulls().unique().to_list(),
            "observation_id": value.items["observation_id"].drop_nulls().unique().to_list(),
        }
        layers = {name: _kept(layer, ids[layer.by]) for name, layer in value.layers.items()}
        return replace(value, media=None if value.media is None else self._copied(value.media), layers=layers)

    def _copied(self, media: MediaFiles) -> MediaFiles:
        """The media as files that tell nothing but what is in them."""
        folder, new = self._folder / MEDIA, [one for one in media.ids if one not in self._given]
        self._given.update(new)
        for one, data in zip(new, media.read.many(new), strict=True):
            made = os.open(one, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644, dir_fd=self._places[1])
            with os.fdopen(made, "wb") as file:
                file.write(data)
            os.utime(one, (0, 0), dir_fd=self._places[1], follow_symlinks=False)
        return MediaFiles(media.medium, LooseFiles(), {one: str(folder / one) for one in media.ids}, _named=False)


def _kept(layer: OwnLayer, ids: Sequence[str]) -> OwnLayer:
    try:
        files = layer.files(ids)
    except MisuseError:  # a layer of numbers or texts, of which features were made
        files = [None] * len(ids)
    return OwnLayer.of(KeptLayer(dict(zip(ids, files, strict=True)), layer.input, layer.by), ids)


@dataclass(frozen=True)
class WalledMethod(Method):
    """A method that runs behind walls; on this side there is what it declares.

    Args:
        name: What it is called.
        settings: Its settings as plain data.
        about: What it declares with these settings.
        inmate: Where it runs.
    """

    name: str
    settings: Mapping[str, Any]
    about: Mapping[str, Any] = field(repr=False)
    inmate: Inmate = field(repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in DECLARED:
            value = self.about[name]
            object.__setattr__(self, name, tuple(value) if isinstance(value, list) else value)

    @property
    def options(self) -> dict[str, Any]:
        return dict(self.settings)

    @property
    def needs(self) -> tuple[Need, ...]:
        return tuple(Need(*need) for need in self.about["needs"])

    @property
    def reads_media(self) -> bool:
        """Whether it opens photos, recordings or patches itself."""
        return any(need.form not in ("features", "table") for need in self.needs)

    @property
    def scale(self) -> Scale:
        scale: Scale = self.about["scale"]
        return scale

    @property
    def external_data(self) -> tuple[str, ...]:
        return tuple(self.about["external_data"])

    @property
    def license(self) -> str:
        return str(self.about["license"])

    @property
    def learns_from_val(self) -> bool:
        return bool(self.about["learns_from_val"])

    @property
    def network_name(self) -> str:
        return str(self.about["network_name"])

    @property
    def chooses_on_val(self) -> bool:
        return bool(self.about["chooses_on_val"])

    def default_steps(self) -> tuple[Step, ...] | None:
        steps = self.about["default_steps"]
        return None if steps is None else tuple(step_from_data(step) for step in steps)

    @property
    def shuffled(self) -> bool:
        return True

    def copied(self, *, anew: bool) -> WalledMethod:
        return replace(self, inmate=self.inmate.again())

    def fit(self, view: View) -> Fitted:
        return self._fitted("fit", view=view)

    def fit_again(self, arrays: Arrays, view: View) -> Fitted:
        return self._fitted("fit_again", arrays=arrays, view=view)

    def _fitted(self, what: str, **given: Any) -> Fitted:
        own = {"name": self.name, "settings": self.settings}
        reply = self.inmate.ask(what, media=self.reads_media, **own, **given)
        made = replace(self, settings=reply["options"], about=reply["about"])
        return Fitted(made, self.inmate.arrays(), tuple(map(str, reply["remarks"])))

    def answer(self, arrays: Arrays, part: Part, labels: Labels) -> Any:
        own = {"name": self.name, "settings": self.settings}
        self.inmate.ask("answer", media=self.reads_media, **own, arrays=arrays, part=part, labels=labels)
        return self.inmate.answers()

    def scores(self, arrays: Arrays, part: Part) -> NDArray[np.float32]:
        raise ValueError("a method behind walls is asked for answers, which say what their scores are")


def refuse_unwalled(steps: Sequence[str] | None, search: object) -> None:
    """Refuses what would run a method or a step of another package outside of the walls."""
    if search is not None:
        raise MisuseError("--walled and --search do not go together: choose settings by --set.")
    for text in steps or ():
        name = text.partition(":")[0]
        if STEPS.is_added(name):
            raise MisuseError(f"--walled: the step {name} of another package would run outside of the walls.")


def configured_walled(name: str, settings: Mapping[str, Any], seed: int, walls: Walls, data: str | Path) -> Configured:
    """A method by its name behind walls, with settings of its own and of its features.

    Raises:
        MisuseError: For names and settings that nothing has, for a method that looks at the past or asks what a release
            has, and where the walls show the release.
    """
    inmate = Inmate(walls)
    root = "" if is_address(data) else str(Path(data).absolute())
    reply = inmate.ask("describe", name=name, settings=dict(settings), seed=seed, root=root)
    about = reply["about"]
    if about["sees"] == "past" or about["open_inputs"]:
        why = "is told of one day after the other" if about["sees"] == "past" else "asks which inputs a release has"
        raise MisuseError(f"--walled: the method {name!r} {why}, which it cannot be behind walls.")
    refuse_unwalled([step["step"] for step in about["default_steps"] or ()], None)
    method = WalledMethod(name, reply["options"], about, inmate)
    return Configured(name, method, reply["features"], reply["of_inputs"], reply["given"])


def described(method: Method) -> dict[str, Any]:
    """What a method declares, as plain data."""
    own = {name: getattr(method, name) for name in (*DECLARED, *SETTLED)}
    steps = method.default_steps()
    told = None if steps is None else [{"step": step.name, **asdict(step)} for step in steps]  # type: ignore[call-overload]
    return {**own, "needs": [(need.form, need.input) for need in method.needs], "default_steps": told}
