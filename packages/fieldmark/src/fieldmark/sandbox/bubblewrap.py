"""The walls around a process: bubblewrap, and what the process still sees of the machine.

It sees the system, the Python installation and the folder of its job; no network, no other files, no other processes.
The working directory of the server is never among it, which may hold the platform itself, nor is a folder above it.
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from fieldmark.errors import MisuseError

log = logging.getLogger(__name__)

SYSTEM = ("/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/etc/ld.so.cache", "/etc/localtime")
# What Python needs of an installation or of a virtual environment: never the whole folder, which may hold more.
INSTALLED = ("bin", "lib", "lib64", "pyvenv.cfg")
# What of /proc is about the machine, not about processes: bubblewrap leaves it writable for root.
MACHINE = ("sys", "sysrq-trigger", "irq", "bus", "acpi", "scsi")


# The packages that jobs in a sandbox may run, where they are installed.
PACKAGES = ("fieldmark", "fieldmark_worlds", "fieldmark_challenge")
# Programs that have walled a process in. A failure is never kept: what is installed later is found.
WORKING: set[str] = set()


def bubblewrap() -> str | None:
    """The program that walls processes in, if it is installed and works here."""
    if why := why_no_walls():
        log.warning("bubblewrap is not used, scoring runs with limits but not walled in: %s", why)
        return None
    return shutil.which("bwrap")


def why_no_walls() -> str:
    """Why processes cannot be walled in; empty where they can. Tried until it works once."""
    program = shutil.which("bwrap")
    if program is None:
        return "it is not installed"
    if program not in WORKING:
        if said := failure_of(program):
            return f"it does not work here ({said})"
        WORKING.add(program)
    return ""


def failure_of(program: str) -> str:
    """What a process says that cannot be walled in; empty where it can."""
    try:
        subprocess.run(
            [*wall(program, None), sys.executable, "-c", f"import {', '.join(sources())}"],
            env=environment(Path("/")),
            capture_output=True,
            timeout=60,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        said = getattr(error, "stderr", None) or str(error).encode()
        return str(said.decode("utf-8", "replace")[-300:]).strip() or "it gave no reason"
    return ""


def require_walls(required: bool | None) -> bool:
    """Decides whether a process may be run without walls, and refuses to go on where it may not and there are none.

    Args:
        required: True and False say so; None asks for walls where bubblewrap is installed.

    Returns:
        Whether walls are required.

    Raises:
        MisuseError: When they are, and bubblewrap is missing or does not work.
    """
    if required is None:
        required = shutil.which("bwrap") is not None
    if required and (why := why_no_walls()):
        raise MisuseError(
            f"Runs are scored within bubblewrap only, and {why}. "
            "Fix that, or pass --no-require-sandbox to score with limits but without walls."
        )
    return required


def wall(program: str, folder: Path | None) -> list[str]:
    """The command line of bubblewrap: the system and Python read-only, the job folder, nothing else."""
    walled = [program, "--unshare-all", "--unshare-user", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    walled += ["--proc", "/proc", *proc_places(), "--dev", "/dev", "--tmpfs", "/tmp", *system_places()]
    for path in python_places():
        walled += ["--ro-bind", str(path), str(path)]
    if folder is not None:
        walled += ["--bind", str(folder), str(folder), "--chdir", str(folder)]
    return [*walled, "--remount-ro", "/"]


def system_places() -> list[str]:
    """What bubblewrap is told about the system: its folders, read-only."""
    told: list[str] = []
    for name in SYSTEM:
        path = Path(name)
        if path.is_symlink():
            told += ["--symlink", str(path.readlink()), name]
        elif path.exists():
            told += ["--ro-bind", name, name]
    return told


def proc_places() -> list[str]:
    """The same about what of /proc can be written to by some: read-only."""
    places = [f"/proc/{name}" for name in MACHINE if Path("/proc", name).exists()]
    return [word for place in places for word in ("--ro-bind", place, place)]


def python_places() -> list[Path]:
    """What this Python and this package are imported from, but for what belongs to the system."""
    here = Path.cwd()
    roots = [root / name for root in (Path(sys.prefix), Path(sys.base_prefix)) for name in INSTALLED]
    roots += [Path(sys.executable).parent, *(place / name for name, place in sources().items())]
    roots += [Path(entry).absolute() for entry in sys.path if entry]
    roots += [path.resolve() for path in roots]
    there = {path for path in roots if path.exists() and not _holds(path, here)}
    return _outermost(sorted(there, key=lambda path: len(path.parts)))


def _holds(path: Path, here: Path) -> bool:
    """Whether a folder is the working directory, or above it."""
    return any(one.is_relative_to(path) for one in (here, here.resolve()))


def _outermost(paths: Iterable[Path]) -> list[Path]:
    places: list[Path] = []
    for path in paths:
        if not any(path.is_relative_to(above) for above in (*map(Path, SYSTEM), *places)):
            places.append(path)
    return places


def sources() -> dict[str, Path]:
    """The folder that each of our packages is imported from, of those that this process has imported."""
    loaded = {name: sys.modules[name].__file__ for name in PACKAGES if name in sys.modules}
    return {name: Path(file).parent.parent for name, file in loaded.items() if file}


def environment(folder: Path) -> dict[str, str]:
    """What the process knows of its surroundings: nothing that the server was started with."""
    paths = [*map(str, sources().values()), *(entry for entry in sys.path if entry and "site-packages" in entry)]
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "LANG": "C.UTF-8",
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths)),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONNOUSERSITE": "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "POLARS_MAX_THREADS": "1",
        "MALLOC_ARENA_MAX": "1",  # otherwise each thread sets memory aside, which limits on memory do not see
    }
