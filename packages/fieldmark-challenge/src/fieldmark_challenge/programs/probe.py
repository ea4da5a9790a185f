"""A program that looks around as a hostile one would, and writes down what was possible; see `self_test`.

It is run within the walls, alone: it imports nothing of ours. What it writes to is written to with what stands there.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

MIB = 1 << 20
# Calls of x86-64 that no program needs, with arguments that change nothing where they are allowed.
CALLS = {
    "new namespaces": (272, 0x10000000),
    "mounts": (165, b"none", b"/tmp", b"tmpfs", 0, 0),
    "tracing": (101, 16, 1, 0, 0),
    "keyrings": (248, b"user", b"x", b"y", 1, -3),
    "io_uring": (425, 8, 0),
    "bpf": (321, 0, 0, 0),
    "memory of others": (310, 1, 0, 0, 0, 0, 0),
    "memfd": (319, b"x", 0),
    "memory of System V": (29, 0, 4096, 0o1600),
    "pages given to a pipe": (278, -1, 0, 0, 0),
}
NO_SUCH_CALL, FORBIDDEN = 38, 1
MACHINE = ("/proc/sys", "/proc/irq", "/proc/bus", "/proc/acpi", "/proc/scsi", "/sys")


def possible(act: Callable[[], Any]) -> bool:
    """Whether something can be done."""
    try:
        act()
    except BaseException:
        return False
    return True


def _opened(path: Path) -> None:
    """Opens something for writing, and writes nothing."""
    os.close(os.open(path, os.O_WRONLY))


def _written_back(path: Path) -> None:
    path.write_bytes(path.read_bytes())


def _seen(path: Path) -> None:
    if path.is_dir():
        list(path.iterdir())
    else:
        path.open("rb").close()


def _is_file_of_others(channel: Path) -> bool:
    """Whether a channel of a process is a file, and the process another one."""
    try:
        return channel.parts[2] != str(os.getpid()) and channel.is_file()
    except OSError:
        return False


def namespaces(about: dict[str, Any]) -> Iterator[str]:
    """What of other processes is seen or reached."""
    if len(list(Path("/proc").glob("[0-9]*"))) > 8:
        yield "processes of others"
    for name, link in about["namespaces"].items():
        own = Path("/proc/self/ns", name)
        if own.is_symlink() and str(own.readlink()) == link:
            yield f"the {name} namespace of the host"


def seccomp(about: dict[str, Any]) -> Iterator[str]:
    """Which calls of the kernel are allowed that should not be."""
    if os.uname().machine != "x86_64":
        yield f"all calls of the kernel: there is no list for {os.uname().machine}"
        return
    libc = ctypes.CDLL(None, use_errno=True)
    for name, call in CALLS.items():
        if libc.syscall(*call) >= 0 or ctypes.get_errno() not in (NO_SUCH_CALL, FORBIDDEN):
            yield name


def uid(about: dict[str, Any]) -> Iterator[str]:
    """Whether it has rights, or can get some."""
    status = dict(line.split(":\t", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":\t" in line)
    if os.getuid() == 0 or possible(lambda: os.setuid(0)):
        yield "the rights of root"
    if any(int(status[name], 16) for name in ("CapPrm", "CapEff", "CapBnd", "CapAmb")):
        yield "capabilities"
    if status.get("NoNewPrivs") != "1":
        yield "programs that give it rights"


def proc(about: dict[str, Any]) -> Iterator[str]:
    """What of the machine can be written to: opened, and two settings written with what stands there."""
    for path in (Path("/proc/sys/kernel/core_pattern"), Path("/proc/sys/vm/overcommit_memory")):
        if possible(partial(_written_back, path)):
            yield f"{path} to write to"
    if possible(partial(_opened, Path("/proc/sysrq-trigger"))):
        yield "/proc/sysrq-trigger to write to"
    for place in MACHINE:
        for folder, _, names in os.walk(place):
            for path in (Path(folder, name) for name in names):
                if os.access(path, os.W_OK) or possible(partial(_opened, path)):
                    yield f"{path} to write to"
                    return


def network(about: dict[str, Any]) -> Iterator[str]:
    """Whether anything outside can be reached."""
    for name, family, kind in (
        ("a network", socket.AF_INET, socket.SOCK_DGRAM),
        ("a network of version 6", socket.AF_INET6, socket.SOCK_DGRAM),
        ("raw packets", socket.AF_PACKET, socket.SOCK_RAW),
        ("the network's settings", socket.AF_NETLINK, socket.SOCK_RAW),
    ):
        if possible(partial(socket.socket, family, kind)):
            yield name
    if possible(lambda: socket.getaddrinfo("example.org", 80)):
        yield "names of the network"
    table = Path("/proc/net/dev").read_text(encoding="utf-8").splitlines()
    if {line.split(":")[0].strip() for line in table if ":" in line} - {"lo"}:
        yield "interfaces of the network"


def files(about: dict[str, Any]) -> Iterator[str]:
    """Whether it sees what it should not, or can write where it should not."""
    if any(possible(partial(_seen, Path(path))) for path in about["hidden"]):
        yield "files of the platform"
    table, images = (Path(os.environ[f"AICROWD_TEST_{name}_PATH"]) for name in ("METADATA", "IMAGES"))
    for folder in (table.parent, images, Path.cwd(), "/", "/usr", "/etc", "/dev", sys.prefix):
        if possible(Path(folder, "evil").touch):
            yield f"{folder} to write to"
    if possible(partial(_opened, table)):
        yield "its inputs to write to"
    if any(possible(partial(_opened, path)) for path in Path("/proc").glob("[0-9]*/fd/*") if _is_file_of_others(path)):
        yield "files that processes of the platform hold open"


def disk(about: dict[str, Any]) -> Iterator[str]:
    """Whether more can be written than it may, to each place that can be written to."""
    for folder in (Path("/tmp"), Path(os.environ["AICROWD_PREDICTIONS_OUTPUT_PATH"]).parent):
        files = [folder / f"fill-{number}" for number in range(2 * about["disk_mb"])]
        if all(possible(partial(file.write_bytes, b"0" * MIB)) for file in files):
            yield f"a disk without end ({folder})"
        for file in files:
            file.unlink(missing_ok=True)


def processes(about: dict[str, Any]) -> Iterator[str]:
    """Whether more can be started than it may, or too few to work with."""
    started: list[int] = []

    def start() -> None:
        while len(started) < 4 * about["processes"]:
            child = os.fork()
            if child == 0:
                time.sleep(60)
                os._exit(0)
            started.append(child)

    if possible(start):
        yield "processes without end"
    if len(started) < about["processes"] // 2:
        yield f"{len(started)} processes of {about['processes']}, since others of the account count"
    for child in started:
        os.kill(child, 9)
        os.waitpid(child, 0)


def look_around(about: dict[str, Any]) -> None:
    """Tries one wall after the other, and writes down what was possible."""
    walls = (namespaces, seccomp, uid, proc, network, files, disk, processes)
    found = {wall.__name__: list(wall(about)) for wall in walls}
    Path(os.environ["AICROWD_PREDICTIONS_OUTPUT_PATH"]).write_text(json.dumps(found), encoding="utf-8")


def _touch(held: bytearray) -> None:
    for place in range(0, len(held), 4096):
        held[place] = 1


def take_memory(about: dict[str, Any]) -> None:
    """Takes more memory than it may, by several processes and files; each of them stays below.

    What it writes says that all of it was held for a second.
    """
    held = bytearray(about["each_mb"] * MIB)
    print("began", flush=True)
    ready, tell = os.pipe()
    children = 2
    for _ in range(children):
        if os.fork() == 0:
            _touch(held)  # its own from now on: what is written to is no longer shared
            os.write(tell, b"1")
            time.sleep(60)
            os._exit(0)
    with Path("/tmp/held").open("wb") as file:
        for _ in range(about["file_mb"]):
            file.write(b"0" * MIB)
    _touch(held)
    for _ in range(children):
        os.read(ready, 1)
    time.sleep(1)
    Path(os.environ["AICROWD_PREDICTIONS_OUTPUT_PATH"]).write_text("held", encoding="utf-8")
    os._exit(0)


if __name__ == "__main__":
    told = json.loads(Path("probe.json").read_text(encoding="utf-8"))
    {"walls": look_around, "memory": take_memory}[sys.argv[1]](told)
