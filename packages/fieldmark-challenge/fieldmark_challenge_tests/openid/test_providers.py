"""The settings of providers: known names need little, others say where they are, and secrets stay secret."""

from __future__ import annotations

import pytest

from fieldmark.errors import InputError
from fieldmark_challenge.site.settings_file import read_settings

FILE = """
[sign-on.orcid]
client_id = "APP-1"

[sign-on.github]
client_id = "Iv1"
client_secret = "of github"

[sign-on.campus]
title = "Campus"
issuer = "https://login.example.edu/realms/main"
client_id = "fieldmark"
client_secret_file = "SECRET"
trust_email = true
"""


def test_known_providers_need_little(tmp_path):
    (tmp_path / "secret").write_text("of the campus\n")
    path = tmp_path / "platform.toml"
    path.write_text(FILE.replace("SECRET", str(tmp_path / "secret")))
    path.chmod(0o600)
    settings = read_settings(path, {"FIELDMARK_SIGN_ON_ORCID_CLIENT_SECRET": "of orcid"})
    orcid, github, campus = settings.providers
    assert (orcid.title, orcid.issuer, orcid.scopes) == ("ORCID", "https://orcid.org", ("openid",))
    assert (github.kind, github.api_url) == ("github", "https://api.github.com")
    assert [one.client_secret for one in settings.providers] == ["of orcid", "of github", "of the campus"]
    assert [one.trust_email for one in settings.providers] == [False, True, True]
    assert campus.scopes == ("openid", "email", "profile") and not any(
        secret in repr(settings) for secret in ("of orcid", "of github", "of the campus")
    )
    assert settings.mail is None


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[sign-on.x]\nclient_id = 'a'\nclient_secret = 'b'", "https://"),
        ("[sign-on.x]\nissuer = 'http://a.org'\nclient_id = 'a'\nclient_secret = 'b'", "https://"),
        ("[sign-on.orcid]\nclient_secret = 'b'", "FIELDMARK_SIGN_ON_ORCID_CLIENT_ID"),
        ("[sign-on.orcid]\nclient_id = 'b'", "FIELDMARK_SIGN_ON_ORCID_CLIENT_SECRET"),
        ("[sign-on.orcid]\nclient_id = 'b'\nclient_secret_file = 'nowhere'", "a file that can be read"),
        ("[sign-on.orcid]\nclientid = 'b'", "'clientid'"),
        (
            "[sign-on.orcid]\nclient_id = 'b'\nclient_secret = 'c'\n[sign-on.again]\nclient_id = 'b'\n"
            "client_secret = 'c'\nissuer = 'https://orcid.org'",
            "each issuer once",
        ),
        ("[sign-on]\norcid = 3", r"a table \[sign-on.orcid\]"),
        ("[sign-on.finish]\nclient_id = 'b'", "a name of small letters"),
    ],
)
def test_wrong_settings_of_providers_get_one_sentence(tmp_path, text, sentence):
    path = tmp_path / "platform.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=sentence):
        read_settings(path, {})
