"""The process that checks runs: `python -m fieldmark.challenge.submitting.checking_job FOLDER`.

```
FOLDER/
  job.json     benchmark, items, labels, whether others may be named, and how large a run may get
  run          the run as it was handed in, or the archive of a program, which is looked through and never run
  out/         refused.json, where there is something wrong with it; exhausted, where it took too much memory
```

It stays, because starting takes longer than most runs do: each line on its standard input asks for one check of what
lies in the folder, and names the benchmark and the limits. A child makes the check; its exit status is the answer. It
knows no truth. What holds for `scoring_job` holds for it as well.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from pathlib import Path

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.challenge.coding.archives import ArchiveRefusedError, inspect
from fieldmark.challenge.scoring.scoring_job import end_with_parent, limit
from fieldmark.challenge.submitting.plain_problems import problems_of, read_as_scored
from fieldmark.challenge.submitting.run_files import RunRefusedError, check_kind
from fieldmark.errors import InputError

READY = "ready"


def check(folder: Path, limits: dict[str, int]) -> None:
    """Checks the run of a job folder."""
    limit(limits["memory_mb"], limits["cpu_s"], limits["output_mb"])
    try:
        job = json.loads((folder / "job.json").read_text(encoding="utf-8"))
        if job.get("program"):
            inspect(folder / "run")
            return
        check_kind(folder / "run", job["benchmark"], limit_mb=job["limit_mb"])
        read_as_scored(job["benchmark"], folder / "run", job["items"], job["labels"], closed=job["closed"])
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
    for line in sys.stdin:
        asked = json.loads(line)
        BENCHMARKS[asked.pop("benchmark")]  # imported once for all
        child = os.fork()
        if child == 0:
            _checked(folder, asked)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), file=answers, flush=True)


def _checked(folder: Path, limits: dict[str, int]) -> None:
    end_with_parent()
    status = 1
    try:
        check(folder, limits)
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
