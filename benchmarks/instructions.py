"""Instructions of one get, create, patch and apply, in one process without a transport, counted by callgrind.

    python benchmarks/instructions.py              # needs valgrind; about a minute for each
    python benchmarks/instructions.py get create
    python benchmarks/instructions.py --test-bench get create   # with a test bench that nobody uses

Two runs with different numbers of requests are subtracted, so that the start of the process does not count. Counts
hardly depend on the load and the speed of the machine: only the periodic work of the server takes part in them.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import subprocess
import sys

from writes import WORKLOADS, run, serving

WARM_UP = 60
FEW = 60
MANY = {"get": 3060, "create": 360, "patch": 360, "apply": 360}
"""Requests of the longer run. With few gets, the periodic work of the server would change their count."""
COUNTED = ("create", "get", "patch", "apply")


async def work(what: str, requests: int, *, test_bench: bool) -> None:
    """Warm the server up with every workload, then make the requests."""
    async with serving(test_bench=test_bench) as api:
        for name in COUNTED:
            await run(api, [WORKLOADS[name](number, 0) for number in range(WARM_UP)])
        if what == "create":
            counted = [WORKLOADS[what](WARM_UP + number, 0) for number in range(requests)]
        else:
            counted = [WORKLOADS[what](number % WARM_UP, 1 + number) for number in range(requests)]
        await run(api, counted)


def instructions(what: str, requests: int, *, test_bench: bool) -> int:
    """Instructions of a process that makes this many requests."""
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", sys.executable, __file__]
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    done = subprocess.run(
        [*command, "--work", what, str(requests), *(["--test-bench"] if test_bench else [])],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    found = re.search(r"Collected : (\d+)", done.stderr)
    assert found is not None, done.stderr
    return int(found[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", nargs="*", help=", ".join(COUNTED))
    parser.add_argument("--test-bench", action="store_true", help="enable the test bench, without using it")
    parser.add_argument("--work", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        asyncio.run(work(given.work[0], int(given.work[1]), test_bench=given.test_bench))
        return
    for what in given.what or COUNTED:
        many, few = (instructions(what, count, test_bench=given.test_bench) for count in (MANY[what], FEW))
        spent = (many - few) / (MANY[what] - FEW)
        print(f"{what:8} {spent:12,.0f} instructions", flush=True)


if __name__ == "__main__":
    main()
