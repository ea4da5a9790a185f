"""The process that checks runs: `python -m fieldmark_challenge.submissions.check_job FOLDER`.

```
FOLDER/
  run             the run as it was submitted, or the archive of a program, which is looked through and never run
  checklist.json  items, labels, whether others may be named; only where this process does not know them yet
  out/            refused.json, where there is something wrong with it; exhausted, where it took too much memory;
                  weights.json, which files of weights lie in the archive of a program
```

It stays, because starting takes longer than most runs do: each line on its standard input asks for one check of what
lies in the folder, and names the benchmark, how large a run may get, the checklist by its digest, and the limits. A
child makes the check; its exit status is the answer. Checklists are kept in the memory of the process that stays, where
no child can change them for the next one. It knows no truth. What holds for `scoring_job` holds for it as well.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.errors import InputError
from fieldmark.web.run_problems import problems_of, read_as_scored
from fieldmark_challenge.scoring.scoring_job import end_with_parent, limit
from fieldmark_challenge.submissions.archives import ArchiveRefusedError, inspect
from fieldmark_challenge.submissions.run_files import RunRefusedError, check_kind

READY = "ready"


def check(folder: Path, asked: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> None:
    """Checks the run of a folder; an archive of a program, where there is nothing to check a run against."""
    limits = asked["limits"]
    limit(limits["memory_mb"], limits["cpu_s"], limits["output_mb"])
    try:
        if wanted is None:
            weights = inspect(folder / "run")
            (folder / "out" / "weights.json").write_text(json.dumps(weights), encoding="utf-8")
            return
        check_kind(folder / "run", asked["benchmark"], limit_mb=asked["limit_mb"])
        read_as_scored(asked["benchmark"], folder / "run", wanted["items"], wanted["labels"], closed=wanted["closed"])
    except InputError as error:
        _refuse(folder, *problems_of(error))
    except RunRefusedError as error:
        _refuse(folder, error.problems, error.total)
    except ArchiveRefusedError as error:
        _refuse(folder, [{"line": None, "text": str(error)}], 1)
    except MemoryError:
        (folder / "out" / "exhausted").touch()


def serve(folder: Path) -> None:
    """Makes one check for each line that comes in."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a check prints goes to the log
    print(READY, file=answers, flush=True)
    kept: dict[str, dict[str, Any]] = {}
    for line in sys.stdin:
        asked = json.loads(line)
        for digest in asked.get("dropped", ()):
            del kept[digest]
        digest = asked.get("checklist")
        if digest is not None and digest not in kept:
            kept[digest] = _checklist(folder / "checklist.json", digest)
        BENCHMARKS[asked["benchmark"]]  # imported once for all
        child = os.fork()
        if child == 0:
            _checked(folder, asked, kept[digest] if digest is not None else None)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), file=answers, flush=True)


def _checklist(file: Path, digest: str) -> dict[str, Any]:
    """A checklist as we were told; nothing that a check before has left behind passes for one."""
    told = file.read_bytes()
    if hashlib.sha256(told).hexdigest() != digest:
        raise RuntimeError("the checklist is not the one of its digest")
    checklist: dict[str, Any] = json.loads(told)
    return checklist


def _checked(folder: Path, asked: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> None:
    end_with_parent()
    status = 1
    try:
        check(folder, asked, wanted)
        status = 0
    except BaseException:  # whatever it is, this process ends here
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _refuse(folder: Path, problems: list[dict[str, object]], total: int) -> None:
    refused = json.dumps({"problems": problems, "total": total})
    (folder / "out" / "refused.json").write_text(refused, encoding="utf-8")


if __name__ == "__main__":
    end_with_parent()
    serve(Path(sys.argv[1]))
