"""Which calls of the kernel a program of participants may make: a list of those that programs need, and no others.

A program for Linux's seccomp (classic BPF), as bubblewrap takes it. What is not listed does not exist (ENOSYS), so that
libraries fall back to older calls. Sockets are for processes of the same program only; no new namespaces, no typing
into terminals, no tracing of others, no keyrings, no io_uring, no bpf. Nor is there memory that belongs to no process
and to no file (memfd, System V, pages given to a pipe): what a program holds can be counted where there are no groups.
"""

from __future__ import annotations

import errno
import platform
import struct

# Numbers of x86-64, by what they are for.
ALLOWED = (
    *range(29),  # files, memory, signals, waiting; then shared memory of System V
    *range(32, 41),  # dup, waiting, timers, getpid, sendfile
    *range(42, 56),  # what is done with a socket once there is one
    *range(57, 64),  # processes; then semaphores, shared memory and messages of System V
    *range(72, 101),  # files, times
    102,
    104,
    *range(105, 116),  # who one is
    *range(117, 122),
    124,
    *range(127, 133),  # signals, times of files
    *range(137, 139),  # statfs
    *range(140, 151),  # priorities, memory that stays
    *range(157, 159),  # prctl, arch_prctl
    160,
    162,
    *range(186, 205),  # gettid, attributes of files, futex, affinity
    213,
    *range(216, 220),  # directories, threads
    *range(221, 227),  # advice on files, timers
    *range(228, 236),  # clocks, exit_group, epoll, tgkill
    *range(237, 240),
    247,
    *range(251, 253),
    *range(257, 272),  # the same calls relative to a folder
    *range(273, 278),
    *range(280, 298),  # what follows vmsplice and the moving of pages
    299,
    302,
    306,
    307,
    309,
    *range(314, 317),
    318,  # getrandom
    322,
    *range(324, 333),  # membarrier to statx
    334,  # rseq
    424,
    434,
    436,
    *range(439, 442),
    449,
    452,
)
SOCKET, IOCTL, CLONE = 41, 16, 56
X86_64 = 0xC000003E
LOCAL = 1  # AF_UNIX
TYPING = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX
NAMESPACES = 0x7E020000  # CLONE_NEW*
ALLOW, KILL = 0x7FFF0000, 0x80000000
_LOAD, _EQUAL, _ANY_BIT, _RETURN = 0x20, 0x15, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _FIRST, _SECOND = 0, 4, 16, 24  # where they lie in what is looked at


def available() -> bool:
    """Whether there is a list for this kind of processor."""
    return platform.system() == "Linux" and platform.machine() == "x86_64"


def program() -> bytes:
    """The program, ready for `bwrap --seccomp`."""
    steps = [
        _step(_LOAD, _ARCHITECTURE),
        _step(_EQUAL, X86_64, 1, 0),
        _step(_RETURN, KILL),
        _step(_LOAD, _NUMBER),
        _step(_EQUAL, SOCKET, 0, 4),
        _step(_LOAD, _FIRST),
        _step(_EQUAL, LOCAL, 0, 1),
        _step(_RETURN, ALLOW),
        _step(_RETURN, _refused(errno.EACCES)),
        _step(_EQUAL, IOCTL, 0, 5),
        _step(_LOAD, _SECOND),
        _step(_EQUAL, TYPING[0], 1, 0),
        _step(_EQUAL, TYPING[1], 0, 1),
        _step(_RETURN, _refused(errno.EPERM)),
        _step(_RETURN, ALLOW),
        _step(_EQUAL, CLONE, 0, 4),
        _step(_LOAD, _FIRST),
        _step(_ANY_BIT, NAMESPACES, 0, 1),
        _step(_RETURN, _refused(errno.EPERM)),
        _step(_RETURN, ALLOW),
    ]
    for number in ALLOWED:
        if number not in (SOCKET, IOCTL, CLONE):
            steps += [_step(_EQUAL, number, 0, 1), _step(_RETURN, ALLOW)]
    return b"".join([*steps, _step(_RETURN, _refused(errno.ENOSYS))])


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _refused(number: int) -> int:
    return 0x00050000 | number
