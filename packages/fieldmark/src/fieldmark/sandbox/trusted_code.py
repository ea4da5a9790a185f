"""Whether files that can run code when they are read may be: pickled networks and estimators, code of a repository.

Nobody but the person at the machine says so, for one command or one block; no file and no setting that travels can.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_TRUSTED: ContextVar[bool] = ContextVar("trusted code", default=False)


@contextmanager
def trusting_code(trusted: bool = True) -> Iterator[None]:
    """Reads such files meanwhile, if `trusted` says so or somebody has said so before."""
    before = _TRUSTED.set(trusted or _TRUSTED.get())
    try:
        yield
    finally:
        _TRUSTED.reset(before)


def code_is_trusted() -> bool:
    """Whether such files may be read now.

    >>> with trusting_code():
    ...     code_is_trusted()
    True
    >>> code_is_trusted()
    False
    """
    return _TRUSTED.get()
