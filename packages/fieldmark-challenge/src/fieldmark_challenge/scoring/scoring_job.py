"""The process that scores one run: `python -m fieldmark_challenge.scoring.scoring_job FOLDER`.

```
FOLDER/
  job.json     benchmark, source files of the scorer, and limits this process puts on itself before it reads anything
  run          the run as it was submitted
  truth/       the truth of the challenge
  out/         <part>.json and <part>.units.parquet, or refused.json; and `used`, what this process used
```

It runs no code of participants, but it reads what they wrote: it has no network, no database and no secrets
(see `sandbox`), and it ends when its worker ends.
"""

from __future__ import annotations

import ctypes
import json
import resource
import signal
import sys
from pathlib import Path
from typing import Any

PR_SET_PDEATHSIG = 1
MIB = 1 << 20


def limit(memory_mb: int, cpu_s: int, output_mb: int) -> None:
    """Puts limits on this process: memory, processor time, size of files, and no core dumps."""
    for what, most in (
        (resource.RLIMIT_AS, memory_mb * MIB),
        (resource.RLIMIT_CPU, cpu_s),
        (resource.RLIMIT_FSIZE, output_mb * MIB),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 256),
    ):
        _, hard = resource.getrlimit(what)
        ceiling = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (ceiling, ceiling))
    end_with_parent()


def end_with_parent() -> None:
    """Has this process ended when the one that started it ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def main(folder: Path) -> None:
    """Scores the run of a job folder."""
    job = json.loads((folder / "job.json").read_text(encoding="utf-8"))
    limit(job["memory_mb"], job["cpu_s"], job["output_mb"])

    out = folder / "out"
    score_into(out, job, folder)
    (out / "used").write_text(json.dumps(used()), encoding="utf-8")


def used() -> dict[str, float]:
    """What this process has used. Walls leave no trace of it: the one that waits is not the one that worked."""
    spent = resource.getrusage(resource.RUSAGE_SELF)
    return {"cpu_s": round(spent.ru_utime + spent.ru_stime, 3), "memory_mb": round(spent.ru_maxrss / 1024)}


def score_into(out: Path, job: dict[str, Any], folder: Path) -> None:
    """Scores the run of a job folder in this process, and writes what came of it."""
    from fieldmark.errors import InputError
    from fieldmark.scoring.score_parts import score_parts, truth_files
    from fieldmark.scoring.scorer_digest import digest_of
    from fieldmark.web.run_problems import problems_of

    try:
        scorer = digest_of(job["scorer"]) if "scorer" in job else None
        cards = score_parts(job["benchmark"], folder / "run", truth_files(folder / "truth"), scorer=scorer)
    except InputError as error:
        problems, total = problems_of(error)
        (out / "refused.json").write_text(json.dumps({"problems": problems, "total": total}), encoding="utf-8")
        return
    for part, card in cards.items():
        card.write(out / f"{part}.json")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
