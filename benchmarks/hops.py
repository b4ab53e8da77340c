"""Files and packages that one POST of a Deployment goes through, below `api/application` and without a transport.

    python benchmarks/hops.py            # number of files, and of calls from one package into another
    python benchmarks/hops.py --list     # and each of them

A package is a directory. A first POST fills the caches and loads the modules, so that only the second one counts. The
control loops and the change feed run in the same event loop and do not count.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections import Counter
from pathlib import Path
from types import FrameType

from workloads import JSON
from writes import ask, run, serving

import kubist
from kubist.base.http.messages import Request

SOURCE = Path(kubist.__file__).parent
ROOT = f"{SOURCE}/"
APPLICATION = f"{SOURCE}/api/application.py"
PATH = "/apis/apps/v1/namespaces/bench/deployments"


def deployment(name: str) -> Request:
    labels = {"app": name}
    container = {"name": "web", "image": "registry.example/web:1", "ports": [{"containerPort": 8080}]}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}
    return ask("POST", PATH, JSON, json.dumps(body).encode())


class Hops:
    """Functions that the application calls, directly or through others. A coroutine that is resumed counts once."""

    def __init__(self) -> None:
        self.calls = 0
        self.files: Counter[str] = Counter()
        self.changes: Counter[tuple[str, str]] = Counter()
        self._seen: set[int] = set()
        self._frames: list[FrameType] = []

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        if event != "call" or id(frame) in self._seen:
            return
        path = frame.f_code.co_filename
        if not path.startswith(ROOT) or not is_below_application(frame):
            return
        self._frames.append(frame)  # A kept frame keeps its id.
        self._seen.add(id(frame))
        self.calls += 1
        self.files[path.removeprefix(ROOT)] += 1
        caller = frame.f_back
        while caller is not None and not caller.f_code.co_filename.startswith(ROOT):
            caller = caller.f_back
        if caller is not None:
            source, target = package(caller.f_code.co_filename), package(path)
            if source != target:
                self.changes[source, target] += 1


def package(path: str) -> str:
    return path.removeprefix(ROOT).rpartition("/")[0]


def is_below_application(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename == APPLICATION:
            return True
        frame = frame.f_back
    return False


async def record() -> Hops:
    hops = Hops()
    async with serving() as application:
        await run(application, [deployment("first")])
        request = deployment("second")
        sys.setprofile(hops)
        try:
            answer = await application(request)
        finally:
            sys.setprofile(None)
        assert answer.status == 201, answer
    return hops


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--list", action="store_true", help="list the files and the changes of package")
    listed = parser.parse_args().list
    hops = asyncio.run(record())
    if listed:
        for path, count in sorted(hops.files.items()):
            print(f"{count:4} {path}")
        for (source, target), count in hops.changes.most_common():
            print(f"{count:4} {source} -> {target}")
    print(f"{len(hops.files)} files, {hops.changes.total()} changes of package, {hops.calls} calls")


if __name__ == "__main__":
    main()
