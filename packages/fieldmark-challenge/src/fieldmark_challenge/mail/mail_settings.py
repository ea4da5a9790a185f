"""Which mail server to use and as whom: from a table of the settings file, or from the environment."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import parseaddr
from pathlib import Path
from typing import Any, Literal, cast, get_args

from fieldmark.errors import InputError
from fieldmark.web.refusals import RefusalError
from fieldmark_challenge.people.names import clean_email

Security = Literal["starttls", "tls", "none"]
PORTS: dict[Security, int] = {"starttls": 587, "tls": 465, "none": 25}
LOCAL = ("localhost", "127.0.0.1", "::1")
PREFIX = "FIELDMARK_SMTP_"
KEYS = ("host", "port", "security", "user", "password", "password_file", "sender", "ca_file", "timeout_s")


@dataclass(frozen=True)
class MailSettings:
    """How mail is sent.

    Args:
        host, port: The mail server.
        sender: Who mails come from: an address, or a name and an address.
        security: `starttls` and `tls` encrypt and check the certificate; `none` is for a server on the same machine.
        user, password: Who we are to the mail server, where it asks.
        ca_file: Certificates to trust besides those of the system.
        timeout_s: How long the mail server may take to answer.
    """

    host: str
    port: int
    sender: str
    security: Security = "starttls"
    user: str = ""
    password: str = field(default="", repr=False)
    ca_file: Path | None = None
    timeout_s: float = 20.0

    def context(self) -> ssl.SSLContext:
        """What the certificate of the mail server is checked against."""
        context = ssl.create_default_context()
        if self.ca_file is not None:
            context.load_verify_locations(self.ca_file)
        return context

    @property
    def domain(self) -> str:
        """The part of the sender's address after the @."""
        return parseaddr(self.sender)[1].rpartition("@")[2]


def read_mail_settings(table: Mapping[str, Any], environment: Mapping[str, str], where: object) -> MailSettings | None:
    """Puts the settings together; what the environment says comes first.

    Args:
        table: The table `[mail]` of the settings file, empty where there is none.
        environment: The environment, with `FIELDMARK_SMTP_HOST` and so on.
        where: The file, for messages.

    Returns:
        The settings, or None where no host is named: mail is off then.

    Raises:
        InputError: Says which setting is wrong.
    """
    if unknown := sorted(set(table) - set(KEYS)):
        raise InputError(where, found=f"[mail] with {unknown[0]!r}", expected=f"only {', '.join(KEYS)}")
    given: dict[str, Any] = dict(table)
    given |= {key: environment[PREFIX + key.upper()] for key in KEYS if environment.get(PREFIX + key.upper())}
    if not given.get("host"):
        if given:
            raise InputError(where, found="settings of mail without a host", expected="host, or FIELDMARK_SMTP_HOST")
        return None
    security = str(given.get("security", "starttls"))
    if security not in get_args(Security):
        raise InputError(where, found=f"security {security!r}", expected="starttls, tls or none")
    kind = cast(Security, security)
    settings = MailSettings(
        host=str(given["host"]),
        port=int(_number(given.get("port", PORTS[kind]), "port", where)),
        sender=_sender(str(given.get("sender", "")), where),
        security=kind,
        user=str(given.get("user", "")),
        password=_password(given, where),
        ca_file=Path(str(given["ca_file"])) if given.get("ca_file") else None,
        timeout_s=_number(given.get("timeout_s", 20), "timeout_s", where),
    )
    if settings.password and kind == "none" and settings.host not in LOCAL:
        hint = "The password would be sent in the clear."
        raise InputError(where, found="a password with security 'none'", expected="starttls or tls", hint=hint)
    return settings


def _number(value: object, name: str, where: object) -> float:
    try:
        number = float(str(value))
    except ValueError as error:
        raise InputError(where, found=f"{name} {value!r}", expected="a number") from error
    if not 0 < number < 65536:
        raise InputError(where, found=f"{name} {value!r}", expected="a number from 1 to 65535")
    return number


def _sender(text: str, where: object) -> str:
    """The sender, refused where it would break a header."""
    expected = "sender, such as 'Fieldmark <challenge@example.org>'"
    if not text.isprintable():
        raise InputError(where, found="a sender with a line break", expected=expected)
    try:
        clean_email(parseaddr(text)[1])
    except RefusalError as error:
        raise InputError(where, found=f"sender {text!r}", expected=expected) from error
    return text


def _password(given: Mapping[str, Any], where: object) -> str:
    if given.get("password") or not given.get("password_file"):
        return str(given.get("password", ""))
    path = Path(str(given["password_file"]))
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(where, found=f"password_file {path}", expected="a file that can be read") from error
