"""`python -m studies.perf [job ...]`: measures, and renews the tables made from the results."""

from __future__ import annotations

import argparse
import json
import sys
import traceback
from importlib import import_module

from studies.evidence.results import write_result
from studies.evidence.tables import write_tables
from studies.perf.jobs import JOBS
from studies.perf.machine import about_machine
from studies.perf.pages import write_pages


def main() -> None:
    """Runs the named jobs, or all; what cannot run is skipped with a sentence, what fails stops nothing else."""
    parser = argparse.ArgumentParser(prog="python -m studies.perf", description=__doc__)
    parser.add_argument("jobs", nargs="*", choices=[*JOBS, []], help="which jobs; all of them if none is named")
    parser.add_argument("--quick", action="store_true", help="leave out the jobs that take more than a minute")
    parser.add_argument("--tables", action="store_true", help="measure nothing, only renew the tables")
    arguments = parser.parse_args()
    names = [] if arguments.tables else arguments.jobs or list(JOBS)
    failed = [name for name in names if not measure(name, quick=arguments.quick)]
    for page in (write_tables(), *write_pages()):
        print("written to", page)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}; their tables are those of the last run that did not")


def measure(name: str, *, quick: bool) -> bool:
    """Runs one job and writes its result; says whether it did not fail."""
    job = JOBS[name]
    print(f"== {name}: {job.about}", flush=True)
    reason = job.cannot_run()
    if not reason and quick and job.minutes > 1:
        reason = f"it takes about {job.minutes} minutes"
    if reason:
        print(f"skipped: {reason}", flush=True)
        return True
    try:
        result = import_module(f"studies.perf.{name}").run()
    except Exception:
        traceback.print_exc()
        return False
    if result is not None:
        print(json.dumps(result, indent=2), flush=True)
        print("written to", write_result(f"perf-{name}", {**about_machine(job.packages), **result}))
    return True


if __name__ == "__main__":
    main()
