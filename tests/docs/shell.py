"""Runs the commands of `sh` blocks, one line after the other, as a user with several terminals would.

Servers run in the background until the page ends or the next one starts, on free ports. `KUBECONFIG` is that of the
server that was started last. Commands of NOT_RUN need software that tests do not install.
"""

from __future__ import annotations

import re
import shlex
import socket
import subprocess
import time
from pathlib import Path

from tests import programs

NOT_RUN = {
    "docker": "needs a container engine; tests/packaging/test_container.py checks the files",
    "git clone": "needs the address of the repository",
    "go": "needs a Go project; examples/ has them",
    "kind": "another product",
    "kube-apiserver": "another product; tests/sharedetcd runs it",
    "make": "tests/packaging/test_setup.py runs make",
    "mvn": "needs a Java project; make ecosystem has them",
    "npm": "needs a TypeScript project; examples/ has one",
    "pip": "tests/packaging installs the package",
    "pipx": "the same",
    "pytest": "tests/testing/test_examples.py runs the commands of docs/ci.md",
    "setup-envtest": "make ecosystem runs it",
    "python benchmarks": "takes minutes on a machine without other load",
    "uv": "the same as pip",
}
"""First words of commands that are only shown, and where else they are tested."""
UNKNOWN = (
    "…",
    "https://a:2379",
    "--context staging",
    "/opt/assets",
    "setup-envtest",
    " config/",
    " deploy/",
    "crds.yaml",
)
"""Parts of commands that are incomplete, or name servers and files of the reader."""
_SERVE = re.compile(r"kubist serve\b")
_BACKGROUND = re.compile(r"(?:kubist apiserver|etcd|kubectl port-forward)\b")
_PORT = re.compile(r"--secure-port[= ](\d+)")


def lines(text: str) -> list[str]:
    """Commands of a block: continued lines are joined, comments are left out."""
    joined = re.sub(r"(?:\\|(?<=\|))\n\s*", " ", text)
    return [
        line.strip() for line in joined.splitlines() if line.strip() and not line.lstrip().startswith("#")
    ]


def is_shown_only(text: str) -> bool:
    """Whether a block sets up a cluster of another product, which its other commands use."""
    return any(line.startswith(("docker ", "kind ")) for line in lines(text))


def is_run(line: str) -> bool:
    """Whether tests can run a command."""
    words = line.split(" -- ")[-1]
    shown = any(re.match(rf"{re.escape(name)}\b", part) for name in NOT_RUN for part in (line, words))
    return not shown and not any(part in line for part in UNKNOWN)


class Shell:
    """Terminals of one page."""

    def __init__(self, directory: Path, environment: dict[str, str]) -> None:
        self._directory = directory
        self._environment = environment
        self._processes: list[subprocess.Popen[bytes]] = []
        self._ports: dict[str, int] = {}
        self._stop = ""

    def close(self) -> None:
        self._stop_server()
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.wait(60)

    def run(self, line: str) -> str:
        """Runs a line. Returns its output."""
        for documented, port in self._ports.items():
            line = line.replace(f"127.0.0.1:{documented}", f"127.0.0.1:{port}")
        if _SERVE.match(line):
            return self._serve(line)
        if _BACKGROUND.match(line):
            self._start(line)
            return ""
        kept = re.match(r'export |eval "', line)
        output = self._bash(f"{line}\nenv -0 > .environment" if kept else line)
        if kept:
            pairs = (self._directory / ".environment").read_text().split("\0")
            named = (pair.partition("=") for pair in pairs)
            self._environment.update({name: value for name, _, value in named if name})
        return output

    def _bash(self, script: str) -> str:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=self._directory,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, f"{script}\n{done.stdout}"
        return done.stdout

    def _serve(self, line: str) -> str:
        """`kubist serve`, which is to be ready."""
        self._stop_server()
        line = line.removesuffix(" &")
        documented = _PORT.search(line)
        line = _PORT.sub("", line)
        output = self._bash(f"{line.replace(' --detach', '')} --secure-port 0 --detach")
        found = re.search(r"on https://127\.0\.0\.1:(\d+)\n  export KUBECONFIG=(.+)\n", output)
        stop = re.search(r"^  (kubist stop\b.*?)  ", output, re.MULTILINE)
        assert found and stop, output
        self._ports[documented[1] if documented else "6443"] = int(found[1])
        self._environment["KUBECONFIG"] = shlex.split(found[2])[0]
        self._stop = stop[1]
        return output

    def _stop_server(self) -> None:
        if self._stop:
            self._bash(self._stop)
            self._stop = ""

    def _start(self, line: str) -> None:
        """A program that runs until it is stopped."""
        ports = []
        if line.startswith("etcd "):
            ports = ["2379"]
            url = f"http://127.0.0.1:{self._take('2379')}"
            peers = f"http://127.0.0.1:{free_port()}"
            line = line.replace("etcd", programs.path_of("etcd"), 1)
            line += f" --listen-client-urls {url} --advertise-client-urls {url} --listen-peer-urls {peers}"
            line += f" --initial-advertise-peer-urls {peers} --initial-cluster default={peers}"
        elif documented := _PORT.search(line):
            ports = [documented[1]]
            line = _PORT.sub(f"--secure-port={self._take(documented[1])}", line)
        elif line.startswith("kubectl port-forward"):
            documented = re.search(r" (\d+)(?::|$)", line)
            assert documented
            ports = [documented[1]]
            line = line.replace(documented[0], f" {self._take(documented[1])}:{documented[1]}")
        process = subprocess.Popen(
            shlex.split(line),
            cwd=self._directory,
            env=self._environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._processes.append(process)
        for documented_port in ports:
            self._wait_for_port(process, self._ports[documented_port], line)

    def _take(self, documented: str) -> int:
        self._ports[documented] = free_port()
        return self._ports[documented]

    def _wait_for_port(self, process: subprocess.Popen[bytes], port: int, line: str) -> None:
        deadline = time.monotonic() + 60
        while True:
            assert process.poll() is None, f"{line}: exit code {process.returncode}"
            try:
                socket.create_connection(("127.0.0.1", port), 5).close()
                return
            except OSError:
                assert time.monotonic() < deadline, f"{line}: does not listen"
                time.sleep(0.05)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
    return port
