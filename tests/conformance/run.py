"""Replays the recorded conversations against a fresh server per area, and says what differs.

    python tests/conformance/run.py [AREA | SCENARIO | PATTERN …] [-v] [--server URL] [--workers N] [--raise-floor]

Without --server one is started for each area, in memory, the way the reference was; with --workers it has so many
processes. `fidelity.py` beside this file is the tool underneath and can be used by hand as well.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import http.client
import json
import os
import re
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml

if TYPE_CHECKING:
    from kubist.api.config import Config

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import fidelity  # noqa: E402

AREAS = ("crud", "watch", "patch", "repr", "core", "groups", "crd", "policy")
_AREA_OF = {"apply": "patch", "authz": "policy", "admit": "policy", "delete": "policy"}
FLOOR = HERE / "floor.json"
TOKENS = """admin-token,admin,u-admin,"system:masters"
dev-token,dev,u-dev,"devs"
viewer-token,viewer,u-viewer,
"""


def area_of(scenario: str) -> str:
    first = scenario.partition("-")[0]
    return _AREA_OF.get(first, first)


@contextlib.contextmanager
def server(workers: int = 1) -> Iterator[str]:
    """A server as the reference was started; its URL."""
    from kubist.api.config import Config

    with tempfile.TemporaryDirectory() as where:
        directory = Path(where)
        (directory / "tokens").write_text(TOKENS)
        config = Config(
            bind_address="127.0.0.1",
            secure_port=0,
            cert_dir=where,
            token_auth_file=str(directory / "tokens"),
            authorization_mode=("RBAC",),
            disable_admission_plugins=("ServiceAccount",),
            service_cluster_ip_range="10.0.0.0/16",
            allow_privileged=True,
            service_account_issuer=("https://kubernetes.default.svc",),
            service_account_signing_key_file=_signing_key(directory),
            workers=workers,
        )
        with one_process(config) if workers == 1 else several_processes(config) as port:
            yield f"https://127.0.0.1:{port}"


@contextlib.contextmanager
def one_process(config: Config) -> Iterator[int]:
    """A server in a thread; its port."""
    from kubist.server.server import Server

    instance = Server(config)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(instance.start(), loop).result(30)
        yield instance.port
    finally:
        asyncio.run_coroutine_threadsafe(instance.stop(1), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@contextlib.contextmanager
def several_processes(config: Config) -> Iterator[int]:
    """A server whose workers are forked off a process of their own; its port."""
    from kubist.server.workers.supervisor import supervise

    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os._exit(
            supervise(config, lambda port: os.close(writing) if os.write(writing, b"%d" % port) else None)
        )
    os.close(writing)
    try:
        yield int(os.read(reading, 16))
    finally:
        os.close(reading)
        os.kill(pid, signal.SIGTERM)
        os.waitpid(pid, 0)


def _signing_key(directory: Path) -> str:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(65537, 2048)
    path = directory / "sa.key"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return str(path)


class Score(NamedTuple):
    """Steps of a scenario answered as the reference answers: but for the wording of messages, and word for word."""

    steps: int
    words: int


Difference = tuple[int, str, list[str]]
"""Number of a step, its request, and the paths in which the answers differ."""


class Result:
    """Replay of one scenario."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.total = 0
        self.differences: list[Difference] = []
        self.wording: list[Difference] = []
        """Steps that differ in nothing but the wording."""
        self.stopped = ""

    @property
    def score(self) -> Score:
        steps = self.total - len(self.differences)
        return Score(steps, steps - len(self.wording))


class KeptConnection(fidelity.Server):  # type: ignore[misc]
    """Server whose steps share a connection. A TLS handshake for each step would cost more than the steps."""

    def __init__(self, url: str) -> None:
        tokens = {"dev": "dev-token", "viewer": "viewer-token"}
        super().__init__(url, "admin-token", insecure=True, tokens=tokens)
        self._connection: http.client.HTTPConnection | None = None

    def send(self, verb: str, path: str, step: dict[str, Any]) -> Any:
        if self._connection is None:
            self._connection = self.connect(30)
        headers, body = self.headers(step), self.body(step)
        if body is not None:
            headers.setdefault("Content-Type", "application/json")
        try:
            self._connection.request(verb, path, body=body, headers=headers)
            response = self._connection.getresponse()
            content = response.read()
        except BaseException:
            self.close()
            raise
        pairs = response.getheaders()
        if response.will_close:
            self.close()
        warnings = [value for name, value in pairs if name.lower() == "warning"]
        return response.status, {name.lower(): value for name, value in pairs}, content, warnings

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def check(url: str, name: str, scenario: dict[str, Any]) -> Result:
    target = KeptConnection(url)
    steps = [s for s in scenario["steps"] if next(k for k in s if k.isupper()) not in ("SLEEP", "CLOSE")]
    result, answers = Result(name), []
    try:
        fidelity.run(target, scenario, answers)
    except Exception as error:
        result.stopped = f"{type(error).__name__}: {error}"
    target.close()
    want = json.loads((HERE / "golden" / f"{name}.json").read_text())
    for index, (step, reference) in enumerate(zip(steps, want, strict=False)):
        result.total += 1
        got = fidelity.comparable(answers[index], step) if index < len(answers) else {"status": None}
        expected = {k: v for k, v in reference.items() if k != "step"}
        wanted, given = fidelity.strip_words(expected), fidelity.strip_words(got)
        found = list(fidelity.differences(wanted, given))
        if found:
            result.differences.append((index + 1, reference["step"], found))
        elif worded := list(fidelity.differences(expected, got)):
            result.wording.append((index + 1, reference["step"], worded))
    return result


def chosen(patterns: list[str]) -> dict[str, list[tuple[str, dict[str, Any]]]]:
    """Scenarios by area."""
    areas: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    for path in sorted((HERE / "scenarios").glob("*.yaml")):
        name = path.stem
        if not patterns or any(
            area_of(name) == p or name == p or re.fullmatch(p.replace("*", ".*"), name) for p in patterns
        ):
            areas.setdefault(area_of(name), []).append((name, yaml.load(path.read_text(), Loader=loader)))
    return areas


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("patterns", nargs="*")
    parser.add_argument("-v", action="store_true", help="every difference of every step")
    parser.add_argument("--words", action="store_true", help="also show differences in wording")
    parser.add_argument("-q", action="store_true", help="only the totals")
    parser.add_argument("--server", help="a running server instead of fresh ones")
    parser.add_argument("--workers", type=int, default=1, help="processes of the fresh servers")
    parser.add_argument("--json", type=Path, help="write how many steps of each scenario passed")
    parser.add_argument("--raise-floor", action="store_true", help="keep what passed now as the new minimum")
    arguments = parser.parse_args()
    total = 0
    scores: dict[str, Score] = {}
    for area, scenarios in chosen(arguments.patterns).items():
        area_total = 0
        running = contextlib.nullcontext(arguments.server) if arguments.server else server(arguments.workers)
        with running as url:
            for name, scenario in scenarios:
                result = check(url, name, scenario)
                area_total += result.total
                scores[name] = result.score
                if not arguments.q:
                    _show(result, verbose=arguments.v, words=arguments.words)
        _summarize(area, [scores[name] for name, _ in scenarios], area_total)
        total += area_total
    _summarize("fidelity", list(scores.values()), total)
    if arguments.json:
        arguments.json.write_text(json.dumps(scores))
    if arguments.raise_floor:
        raise_floor(scores)


def _summarize(what: str, scores: list[Score], total: int) -> None:
    steps, words = sum(score.steps for score in scores), sum(score.words for score in scores)
    percent = 100 / max(total, 1)
    print(f"{what}: {steps}/{total} steps ({steps * percent:.2f} %), {words} in the same words", end=" ")
    print(f"({words * percent:.2f} %)", flush=True)


def floor() -> dict[str, Score]:
    """Score that each scenario must reach."""
    found = json.loads(FLOOR.read_text()) if FLOOR.exists() else {}
    return {name: Score(**score) for name, score in found.items()}


def raise_floor(scores: dict[str, Score]) -> None:
    known = floor()
    for name, score in scores.items():
        before = known.get(name, Score(0, 0))
        known[name] = Score(max(score.steps, before.steps), max(score.words, before.words))
    lines = [
        f'"{name}": {{"steps": {score.steps}, "words": {score.words}}}'
        for name, score in sorted(known.items())
    ]
    FLOOR.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def _show(result: Result, *, verbose: bool, words: bool) -> None:
    if result.stopped:
        print(f"{result.name}: stopped: {result.stopped}")
    shown = sorted(result.differences + (result.wording if words else []))
    for step, request, differences in shown:
        print(f"{result.name} step {step}: {request}")
        for difference in differences if verbose else differences[:3]:
            print("    " + difference)
        if len(differences) > 3 and not verbose:
            print(f"    (+{len(differences) - 3} more; -v shows all)")
    mark = "    " if result.differences else "ok  "
    print(f"{mark}{result.name}: {result.score.steps}/{result.total}", flush=True)


if __name__ == "__main__":
    main()
