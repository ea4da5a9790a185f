"""A mail server that listens on a port of its own and keeps what it is given."""

from __future__ import annotations

import datetime as dt
import email
import ipaddress
import re
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from email.message import EmailMessage
from email.policy import default
from pathlib import Path
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from fieldmark_challenge.mail.mail_settings import MailSettings

USER, PASSWORD = "fieldmark", "the password of the mail server"


@dataclass
class Mailbox:
    """What arrived, and what is refused."""

    mails: list[EmailMessage] = field(default_factory=list)
    envelopes: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    refuse: dict[str, str] = field(default_factory=dict)

    async def handle_RCPT(self, server: Any, session: Any, envelope: Any, address: str, options: Any) -> str:
        if address in self.refuse:
            return self.refuse[address]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        self.mails.append(email.message_from_bytes(envelope.content, policy=default))
        self.envelopes.append((envelope.mail_from, tuple(envelope.rcpt_tos)))
        return "250 OK"

    def to(self, address: str) -> list[EmailMessage]:
        return [mail for mail in self.mails if mail["To"] == address]


def authenticate(server: Any, session: Any, envelope: Any, mechanism: str, data: Any) -> AuthResult:
    right = (data.login, data.password) == (USER.encode(), PASSWORD.encode())
    return AuthResult(success=right, handled=False)


def make_certificate(folder: Path) -> Path:
    """A certificate for this machine and its key, in one file that is its own authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "mail for tests")])
    now = dt.datetime.now(dt.UTC)
    here = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=30))
        .add_extension(here, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = folder / "certificate.pem"
    plain = serialization.NoEncryption()
    key_text = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    path.write_bytes(key_text + certificate.public_bytes(serialization.Encoding.PEM))
    return path


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def listening(settings: MailSettings, mailbox: Mailbox) -> Iterator[None]:
    """The mail server as the settings describe it, for as long as it is needed."""
    context = None
    if settings.security != "none":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(settings.ca_file)
    options: dict[str, Any] = {"hostname": settings.host, "port": settings.port, "ready_timeout": 30.0}
    if settings.user:
        options |= {"authenticator": authenticate, "auth_required": True}
        options |= {"auth_require_tls": settings.security == "starttls"}  # a line that is all TLS counts as plain there
    if settings.security == "starttls":
        options |= {"tls_context": context, "require_starttls": True}
    elif settings.security == "tls":
        options["ssl_context"] = context
    server = Controller(mailbox, enable_SMTPUTF8=True, **options)
    server.start()
    try:
        yield
    finally:
        server.stop()


def plain_settings(**changes: Any) -> MailSettings:
    sender = "Fieldmark <challenge@example.org>"
    return replace(MailSettings("127.0.0.1", free_port(), sender, "none", timeout_s=10.0), **changes)


def link_in(mail: EmailMessage, path: str) -> str:
    """The first link to a path, without the address of the platform."""
    found = re.search(rf"https://fieldmark\.example({path}/\S+)", mail.get_content())
    assert found is not None, mail.get_content()
    return found[1]
