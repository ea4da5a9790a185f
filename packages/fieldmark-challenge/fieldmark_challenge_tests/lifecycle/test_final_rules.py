"""What decides about the end stays once the end is known, and who has seen the truth does not compete."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

import pytest

from fieldmark.web.refusals import ConflictError, RefusalError
from fieldmark_challenge.challenges import phases
from fieldmark_challenge.lifecycle import challenge_settings, creation
from fieldmark_challenge.people import accounts, teams
from fieldmark_challenge.records.schema import AuditEvent, Challenge, utc_now
from fieldmark_challenge_tests.platform import Platform, run_text, truth_text


def revealed(platform: Platform) -> Challenge:
    platform.set_phase(ends_at=utc_now())
    phases.reveal(platform.database, platform.admin, platform.challenge)
    with platform.database.read() as session:
        return session.get_one(Challenge, platform.challenge.id)


def change(platform: Platform, challenge: Challenge, **wanted: object) -> None:
    texts = replace(challenge_settings.texts_of(challenge), **wanted)
    challenge_settings.change(platform.database, platform.admin, challenge, texts, most_upload_mb=64)


@pytest.mark.parametrize("wanted", [{"max_final": 1}, {"needs_run_without_external": True}, {"ladder": True}])
def test_rules_that_decide_stay_after_the_reveal(small_platform: Platform, wanted):
    challenge = revealed(small_platform)
    with pytest.raises(ConflictError, match="stays"):
        change(small_platform, challenge, **wanted)
    change(small_platform, challenge, summary="The results are out.")


def test_the_truth_stays_after_the_reveal(small_platform: Platform):
    challenge = revealed(small_platform)
    (small_platform.folder / "new.csv").write_text(truth_text(swapped=True))
    corrected = (small_platform.admin, challenge, small_platform.folder / "new.csv")
    with pytest.raises(ConflictError, match="final"):
        creation.replace_truth(small_platform.database, small_platform.storage, *corrected)


def test_every_change_of_a_rule_is_noted_with_what_it_was(platform: Platform):
    change(platform, platform.challenge, max_final=1, rules="Be kind.")
    phase = platform.phase()
    ends = utc_now() + dt.timedelta(days=3)
    phases.change_phase(platform.database, platform.admin, platform.challenge, phase, daily_limit=2, ends_at=ends)
    with platform.database.read() as session:
        noted = {event.action: event.details for event in session.query(AuditEvent).order_by(AuditEvent.id)}
    changed = noted["challenge.change"]["changed"]
    assert changed["max_final"] == {"before": 2, "after": 1}
    assert changed["rules"]["after"] == "Be kind." and set(changed) == {"max_final", "rules"}
    assert noted["phase.set"]["before"]["daily_limit"] == 5 and noted["phase.set"]["daily_limit"] == 2
    assert noted["phase.set"]["before"]["ends_at"] == phase.ends_at.isoformat()


def test_who_ran_a_challenge_cannot_compete_in_it_later(platform: Platform):
    helper = platform.person("helper")
    challenge_settings.add_organizer(platform.database, platform.admin, platform.challenge, "helper")
    challenge_settings.remove_organizer(platform.database, platform.admin, platform.challenge, helper.id)
    with pytest.raises(ConflictError, match="had access"):
        platform.captain("helper")
    ada = platform.captain("ada")
    link = teams.invite(platform.database, ada, platform.team(ada))
    with pytest.raises(ConflictError, match="had access"):
        teams.join(platform.database, helper, link)


def test_who_was_an_admin_cannot_compete_in_what_there_was_and_may_in_what_comes(platform: Platform):
    former = platform.person("former", role="admin")
    accounts.set_role(platform.database, platform.admin, former.id, "participant")
    former.role = "participant"
    with pytest.raises(ConflictError, match="had access"):
        platform.captain("former")
    later = platform.make("later")
    platform.captain("former", later)


def test_nobody_becomes_an_admin_while_competing(platform: Platform):
    ada = platform.captain("ada")
    with pytest.raises(RefusalError, match="takes part in tiny"):
        accounts.set_role(platform.database, platform.admin, ada.id, "admin")
    # Whoever has a team all the same (made before there was such a rule) submits nothing.
    with platform.database.write() as session:
        session.merge(ada).role = "admin"
    ada.role = "admin"
    with pytest.raises(ConflictError, match="cannot take part"):
        platform.hand_in(ada, run_text())


def test_a_refused_upload_binds_nobody_to_a_team(platform: Platform):
    ada = platform.captain("ada")
    with pytest.raises(RefusalError):
        platform.hand_in(ada, "id,predicted\nno,run\n")
    teams.leave(platform.database, ada, platform.challenge)
    bea = platform.captain("bea")
    platform.hand_in(bea)
    with pytest.raises(ConflictError, match="stays together"):
        teams.leave(platform.database, bea, platform.challenge)
