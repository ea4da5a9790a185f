"""What the tests of the platform rest on."""

from __future__ import annotations

import pytest

from fieldmark_tests.system_programs import absent


def test_absent_programs_fail_where_they_are_required(monkeypatch):
    monkeypatch.delenv("FIELDMARK_REQUIRE_SYSTEM", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no such program"):
        absent("no such program")
    monkeypatch.setenv("FIELDMARK_REQUIRE_SYSTEM", "1")
    with pytest.raises(pytest.fail.Exception, match="asks for it"):
        absent("no such program")
