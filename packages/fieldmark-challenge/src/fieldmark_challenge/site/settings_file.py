"""The settings file of a platform (TOML): what holds secrets, and therefore has no place on a command line."""

from __future__ import annotations

import logging
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fieldmark.errors import InputError
from fieldmark_challenge.mail.mail_settings import MailSettings, read_mail_settings
from fieldmark_challenge.openid.providers import Provider, read_providers

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PlatformSettings:
    """What the file and the environment say.

    Args:
        mail: The mail server; None where no mail is sent.
        providers: Whom people may sign in through.
    """

    mail: MailSettings | None = None
    providers: tuple[Provider, ...] = ()


def read_settings(path: Path | None, environment: Mapping[str, str]) -> PlatformSettings:
    """Reads the settings.

    Args:
        path: The file, if there is one.
        environment: The environment, whose values come first.

    Raises:
        InputError: Says what is wrong with them.
    """
    tables = _tables(path) if path is not None else {}
    where = path or "the environment"
    known = ("mail", "sign-on")
    if unknown := sorted(set(tables) - set(known)):
        raise InputError(where, found=f"[{unknown[0]}]", expected=" and ".join(f"[{name}]" for name in known))
    return PlatformSettings(
        mail=read_mail_settings(_table(tables, "mail", where), environment, where),
        providers=read_providers(_table(tables, "sign-on", where), environment, where),
    )


def _tables(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
        if path.stat().st_mode & 0o077:
            log.warning("%s holds secrets and can be read by other accounts: chmod 600 it", path)
        return tomllib.loads(text)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(path, found=f"no file that can be read ({error})", expected="the settings file") from error
    except tomllib.TOMLDecodeError as error:
        raise InputError(path, found=f"something that is not TOML ({error})", expected="the settings file") from error


def _table(tables: Mapping[str, Any], name: str, where: object) -> Mapping[str, Any]:
    table = tables.get(name, {})
    if not isinstance(table, Mapping):
        raise InputError(where, found=f"{name} = {type(table).__name__}", expected=f"a table [{name}]")
    return table
