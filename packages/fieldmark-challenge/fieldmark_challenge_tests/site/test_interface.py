"""The interface as its description has it: drawn questions are answered, and none with a fault."""

from __future__ import annotations

import pytest

pytest.importorskip("schemathesis", reason="schemathesis draws the questions")

from studies.evidence import interface


def test_drawn_questions_are_never_answered_with_a_fault(tmp_path):
    with interface.small_site(tmp_path) as (app, tokens), interface.without_limits():
        admin = {"admin": tokens["admin"]}
        statuses, faults = interface.ask(app, admin, examples=2, strange_addresses=False)
    assert faults == []
    assert statuses[200] and statuses[422] and statuses.total() > 60
