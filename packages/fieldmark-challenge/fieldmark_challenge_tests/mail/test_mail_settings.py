"""The settings of mail: from a file, from the environment, and refused in one sentence."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from fieldmark.errors import InputError
from fieldmark_challenge.site.settings_file import read_settings

FILE = """
[mail]
host = "smtp.example.org"
user = "fieldmark"
password = "a secret"
sender = "Fieldmark <challenge@example.org>"
"""


def written(folder: Path, text: str, mode: int = 0o600) -> Path:
    path = folder / "platform.toml"
    path.write_text(text)
    path.chmod(mode)
    return path


def test_mail_is_off_unless_a_server_is_named():
    assert read_settings(None, {}).mail is None


def test_the_environment_comes_before_the_file(tmp_path, caplog):
    path = written(tmp_path, FILE)
    mail = read_settings(path, {}).mail
    assert (mail.host, mail.port, mail.security, mail.password) == ("smtp.example.org", 587, "starttls", "a secret")
    assert "a secret" not in repr(mail) and caplog.text == ""
    (tmp_path / "password").write_text("another secret\n")
    environment = {"FIELDMARK_SMTP_SECURITY": "tls", "FIELDMARK_SMTP_USER": "other"}
    mail = read_settings(path, environment).mail
    assert (mail.port, mail.security, mail.user) == (465, "tls", "other")
    alone = {"FIELDMARK_SMTP_HOST": "localhost", "FIELDMARK_SMTP_SENDER": "a@example.org"}
    alone |= {"FIELDMARK_SMTP_PASSWORD_FILE": str(tmp_path / "password")}
    mail = read_settings(None, alone).mail
    assert mail.password == "another secret" and mail.domain == "example.org"


def test_a_file_that_others_can_read_is_remarked_on(tmp_path, caplog):
    caplog.set_level(logging.WARNING)
    read_settings(written(tmp_path, FILE, 0o644), {})
    assert "chmod 600" in caplog.text


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[mail]\nhost = 'x'", "expected sender"),
        ("[mail]\nhost = 'x'\nsender = \"a@b.org\\nBcc: c@d.org\"", "a sender with a line break"),
        ("[mail]\nsender = 'a@b.org'", "without a host"),
        ("[mail]\nhost = 'x'\nsender = 'a@b.org'\npasword = 'y'", "'pasword'"),
        ("[mail]\nhost = 'x'\nsender = 'a@b.org'\nport = 'y'", "port 'y'"),
        ("[mail]\nhost = 'x'\nsender = 'a@b.org'\nsecurity = 'ssl'", "starttls, tls or none"),
        ("[mail]\nhost = 'x'\nsender = 'a@b.org'\nsecurity = 'none'\npassword = 'y'", "in the clear"),
        ("[mail]\nhost = 'x'\nsender = 'a@b.org'\npassword_file = 'nowhere'", "a file that can be read"),
        ("[maill]\nhost = 'x'", r"\[maill\]"),
        ("mail = 3", r"a table \[mail\]"),
        ("[mail", "not TOML"),
    ],
)
def test_wrong_settings_get_one_sentence(tmp_path, text, sentence):
    with pytest.raises(InputError, match=sentence) as caught:
        read_settings(written(tmp_path, text), {})
    assert "platform.toml" in str(caught.value)
