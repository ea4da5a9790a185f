"""Tables of the studies of the platform and of clusters: what breaks them, and what the interface answers."""

from __future__ import annotations

from typing import Any

from studies.evidence.markdown import table

TITLES = {
    "workers_on_postgresql": "workers ended by kill -9, PostgreSQL",
    "workers_on_sqlite": "workers ended by kill -9, SQLite",
    "servers_on_postgresql": "servers ended by kill -9, PostgreSQL",
    "servers_on_sqlite": "servers ended by kill -9, SQLite",
    "database_restarted": "PostgreSQL stopped and started under load",
    "disk_full": "no room on the disk, then room again",
    "clock_on_postgresql": "a clock that jumps by an hour, that of PostgreSQL",
}


def ray_cluster(name: str, result: dict[str, Any]) -> str:
    """What became of an extraction whose node was killed."""
    rows = [
        [
            row["what"],
            f"{row['looks']:,}",
            " + ".join(f"{number:,}" for number in row["looks_of_nodes"]),
            f"{row['stored']:,}",
            f"{row['distinct']:,}",
            "yes" if row["equal"] else "no",
        ]
        for row in result["rows"]
    ]
    return (
        "## Is anything lost when a node of a cluster dies?\n\n"
        f"Features ({result['backbone']}, {result['size']} px) of {result['photos']:,} real photos of fungi in "
        f"{result['blocks']} blocks: by this machine, by a Ray cluster of two nodes on it, and by one whose second "
        "node was killed with its processes in the middle of a block, after half of the blocks. Photos with the same "
        "bytes are stored once; looks beyond the number of photos are work that was done again. Equal means to the "
        "last bit.\n\n" + table(["by", "looks at photos", "by each node", "stored", "of them distinct", "equal"], rows)
    )


def side_by_side(name: str, result: dict[str, Any]) -> str:
    """What became of programs and runs under load."""
    kinds = {"run": "runs", "honest": "honest programs", "forks": "programs that fork without end"}
    kinds |= {"memory": "programs that take too much memory", "disk": "programs that write too much"}
    kinds |= {"time": "programs that do not end"}
    rows = [
        [title, *(str(result["became"].get(kind, {}).get(state, 0)) for state in ("scored", "refused", "failed"))]
        for kind, title in kinds.items()
    ]
    broken = sum(number for status, number in result["statuses"].items() if not status.split()[-1].startswith("2"))
    return (
        "## Do the shipped units get along under one account?\n\n"
        f"A server, {result['units']['programs@']} workers that run programs and {result['units']['worker@']} that "
        "score, started with the commands of the units by one account that is not root, on SQLite, with two challenges "
        f"that ask for programs and one that asks for runs, for {result['seconds']:g} seconds (simulated). Of "
        f"{result['accepted']} that were accepted, {result['scored_twice']} were scored twice; "
        f"{result['programs_tried_again']} programs had to be run again, {broken} requests were answered with an error "
        f"or not at all, and {'no process ended early' if result['alive'] else 'PROCESSES ENDED EARLY'}.\n\n"
        + table(["sent (simulated)", "scored", "refused", "failed"], rows)
    )


def faults(name: str, result: dict[str, Any]) -> str:
    """What became of runs that were accepted while something broke."""
    parts = result["parts"]
    rows = [_row(title, parts[part]) for part, title in TITLES.items() if part in parts]
    for kind, one in parts.get("clock_jumps", {}).items():
        if isinstance(one, dict):
            rows.append(_row(f"a clock that jumps by an hour, that of the machine ({kind})", one))
    columns = ["what happened (simulated)", "accepted", "lost", "scored", "given up", "scored twice", "wrong score"]
    killed = sum(parts[part].get("killed", 0) for part in TITLES if part in parts and part.startswith("workers"))
    given_up = "; a run is given up after its fourth attempt, and then costs its team nothing"
    said = [f"{killed} workers were killed while they scored a run{given_up}."] if killed else []
    if "database_restarted" in parts:
        one = parts["database_restarted"]
        said.append(
            f"With the database stopped {one['restarts']} times, pages were answered with "
            f"{_counts(one['statuses']['pages'])} and uploads with {_counts(one['statuses']['runs'])}."
        )
    if "disk_full" in parts:
        one = parts["disk_full"]
        said.append(
            f"Without room, uploads were answered with {_counts(one['while_full'])}, pages with "
            f"{_counts(one['pages_while_full'])} and `/readyz` with {one['readyz_while_full']}; "
            f"{one['stray_files']} files were left behind."
        )
    if "midnight" in parts:
        one = parts["midnight"]
        said.append(
            f"Around midnight, {sum(one['statuses'].values())} uploads of a team with {one['daily']} runs a day: "
            f"{one['accepted'].get('before', 0)} were taken before and {one['accepted'].get('after', 0)} after it."
        )
    said += _attacks(parts)
    return "## What breaks the platform?\n\n" + " ".join(said) + "\n\n" + table(columns, rows)


def _attacks(parts: dict[str, Any]) -> list[str]:
    """What became of attacks, on both databases."""
    said = []
    for kind, where in (("sqlite", "SQLite"), ("postgresql", "PostgreSQL")):
        if one := parts.get(f"servers_on_{kind}"):
            said.append(
                f"{one['killed']} servers were killed on {where} while people handed in, at once and in parts, and "
                f"asked again: {_counts(one['statuses'])}."
            )
        if one := parts.get(f"everything_at_once_on_{kind}"):
            said.append(
                f"{one['people']} people at once on {where}, {sum(one['statuses'].values()):,} requests of eight "
                f"kinds: {one['faults']} were answered with a fault, {one['lost']} of {one['accepted']} accepted runs "
                f"were lost, {one['scored_twice']} scored twice, and {len(one['leaks'])} answers held a name that only "
                "the truth holds."
            )
        if one := parts.get("canary_labels" if kind == "sqlite" else f"canary_labels_on_{kind}"):
            said.append(
                f"{one['bad_files']:,} damaged files and {one['rising_runs']} runs that get better, on {where}: names "
                f"that only the truth holds were in {len(one['leaks'])} of {sum(one['texts'].values()):,} texts that a "
                "participant got, mails and exports included, or that were logged."
            )
    if sizes := sorted({one["size"] for one in parts.values() if one.get("size", 1) < 1}):
        said.append(
            f"Some parts were made at {sizes[0]:.0%} to {sizes[-1]:.0%} of their size (`FIELDMARK_STUDY_SIZE`)."
        )
    return said


def interface(name: str, result: dict[str, Any]) -> str:
    """What drawn questions were answered with."""
    rows = [[status, f"{count:,}"] for status, count in result["statuses"].items()]
    return (
        "## Is the interface of the platform ever at a loss?\n\n"
        f"{result['questions']:,} questions that Schemathesis drew from its description, fitting and not, by an admin, "
        f"by somebody with a team and by nobody: {len(result['faults'])} were answered with a fault (5xx).\n\n"
        + table(["status", "answers"], rows)
    )


def _row(title: str, one: dict[str, Any]) -> list[str]:
    states = one["states"]
    counts = (one["accepted"], one["lost"], states.get("scored", 0), states.get("failed", 0), one["scored_twice"])
    wrong = one["wrong_scores"] - states.get("failed", 0)  # what was given up has none
    return [title, *map(str, counts), str(wrong)]


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{status} ({count:,})" for status, count in counts.items())
