"""Joining a Ray cluster, and leaving it: `connect`.

Ray waits for minutes, without a word, for a head node that is not there. So the head is asked first, for a few seconds.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import textwrap
import threading
from collections.abc import Callable
from importlib import import_module
from typing import Any

from fieldmark.errors import MisuseError
from fieldmark.registry import require

# How long a head node may take to answer at all, and one that has answered before, in seconds.
ANSWER_S, ANSWER_AGAIN_S = 20.0, 5.0
# How Ray is told to leave alone what is not its own.
ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing about the work leaves the cluster
    "RAY_TQDM_PATCH_PRINT": "0",  # Python's print stays what it is
}
AUTO, HERE = "auto", "local"


def connect(address: str | None = None) -> Callable[[], None]:
    """Joins a Ray cluster, or starts one on this machine; returns the function that leaves it again.

    Args:
        address: Of the head node; "auto" for the one that `ray start` has started on this machine; None for
            RAY_ADDRESS, or else a cluster of this machine alone that ends with the work.

    Raises:
        MissingExtraError: When Ray is not installed.
        MisuseError: When there is no cluster at the address.
    """
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    ray: Any = require("ray", "The engine ray")
    if ray.is_initialized():
        return lambda: None
    where = address or os.environ.get("RAY_ADDRESS") or HERE
    if "://" in where:
        expected = "expected the HOST:PORT that `ray start` prints, or auto, on a machine that is a node of the cluster"
        raise MisuseError(f"address={where}: {expected}.")
    started = {"include_dashboard": False} if where == HERE else {}
    on_end = signal.getsignal(signal.SIGTERM)
    try:
        _check_head(where)
        ray.init(address=where, logging_level=logging.ERROR, log_to_driver=False, **started)
    except MisuseError:
        raise
    except Exception as error:  # Ray raises that very class where a node takes long to start
        why = textwrap.shorten(str(error), 300).rstrip(".")
        if where == HERE:
            raise MisuseError(f"Ray could not be started on this machine: {why}.") from error
        hint = "Start one with `ray start --head`, or leave out the address to use this machine alone."
        raise MisuseError(f"There is no Ray cluster at address={where} that can be joined ({why}). {hint}") from error

    def leave() -> None:
        ray.shutdown()
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, on_end)  # Ray has put its own in place

    return leave


def answers(head: str) -> bool:
    """Whether somebody listens at the HOST:PORT of a head node that has been joined."""
    try:
        _listening(head, ANSWER_AGAIN_S)
    except OSError:
        return False
    return True


def _check_head(address: str) -> None:
    """Raises OSError where no head node of Ray answers, MisuseError where it asks for a token that was not sent."""
    head = _started_here() if address == AUTO else address
    if not head.rpartition(":")[2].isdigit():
        return  # no HOST:PORT: Ray says at once what is wrong with it
    _listening(head, ANSWER_S)
    if address == AUTO:
        return  # it was found by what `ray start` has noted, and Ray finds its token when it joins
    problems: list[Exception] = []

    def ask() -> None:
        try:
            import_module("ray._raylet").GcsClient(address=head)
        except (ImportError, AttributeError, TypeError):
            return  # a version of Ray that has no such client: it must find out for itself
        except Exception as error:
            problems.append(error)

    # Whoever else listens there says nothing that Ray understands, and Ray would ask again and again.
    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(ANSWER_S)
    if any(type(problem).__name__ == "AuthenticationError" for problem in problems):  # newer versions have it
        hint = "set RAY_AUTH_MODE=token, with the token of the head in ~/.ray/auth_token or RAY_AUTH_TOKEN_PATH"
        raise MisuseError(f"The Ray cluster at address={address} asks for its token: {hint}.")
    if asking.is_alive() or problems:
        raise ConnectionError("what answers there is no head node of Ray")


def _listening(head: str, seconds: float) -> None:
    host, _, port = head.rpartition(":")
    socket.create_connection((host.strip("[]"), int(port)), timeout=seconds).close()


def _started_here() -> str:
    """The HOST:PORT of the cluster that `ray start` has started on this machine; it may have ended since.

    Raises:
        ConnectionError: When there is none.
    """
    services: Any = import_module("ray._private.services")
    try:
        head: str = services.get_ray_address_from_environment(AUTO, None)
    except (AttributeError, TypeError):  # a version of Ray that finds it otherwise, when it joins
        return AUTO
    return head
