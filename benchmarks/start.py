"""Start time and memory of a kube-apiserver with its etcd, started as envtest starts them.

    python benchmarks/start.py                                  # Kubist, by the executables of `kubist envtest`
    python benchmarks/start.py --assets /usr/local/kubebuilder/bin    # a kube-apiserver and etcd
    python benchmarks/start.py --runs 7 --warm                  # Kubist with the helper of `kubist envtest --warm`

Prints the median and the range of the seconds from the start of `kube-apiserver` until /readyz answers `ok`, those of
`etcd` until it answers, and the resident memory of both processes when they are ready.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

TIMEOUT = 120.0


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
    return port


def wait_until_ok(url: str, process: subprocess.Popen[bytes]) -> None:
    """Waits until a URL answers with status 200."""
    context = ssl._create_unverified_context()
    deadline = time.monotonic() + TIMEOUT
    while time.monotonic() < deadline:
        if process.poll() is not None:
            sys.exit(f"{process.args!r} ended with exit code {process.returncode}")
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5, context=context) as answer:
            if answer.status == 200:
                return
        time.sleep(0.005)
    sys.exit(f"{url} was not ready after {TIMEOUT:g} s")


def megabytes(process: subprocess.Popen[bytes]) -> float:
    """Resident memory of a process, without that of its children."""
    for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1000
    return 0.0


def measure(assets: Path, directory: Path) -> tuple[float, float, float, float]:
    """Seconds of etcd and of kube-apiserver, and megabytes of both."""
    client, peer, port = free_port(), free_port(), free_port()
    key = directory / "sa.key"
    subprocess.run(["openssl", "genrsa", "-out", str(key), "2048"], check=True, capture_output=True)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    since = time.perf_counter()
    etcd = subprocess.Popen(
        [
            str(assets / "etcd"),
            f"--data-dir={directory / 'etcd'}",
            f"--listen-client-urls=http://127.0.0.1:{client}",
            f"--advertise-client-urls=http://127.0.0.1:{client}",
            f"--listen-peer-urls=http://127.0.0.1:{peer}",
            "--unsafe-no-fsync=true",
        ],
        **quiet,  # type: ignore[arg-type]
    )
    wait_until_ok(f"http://127.0.0.1:{client}/health", etcd)
    etcd_seconds = time.perf_counter() - since
    since = time.perf_counter()
    server = subprocess.Popen(
        [
            str(assets / "kube-apiserver"),
            f"--etcd-servers=http://127.0.0.1:{client}",
            f"--cert-dir={directory / 'certificates'}",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            "--authorization-mode=RBAC",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--service-account-issuer=https://127.0.0.1/",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            "--disable-admission-plugins=ServiceAccount",
        ],
        **quiet,  # type: ignore[arg-type]
    )
    try:
        wait_until_ok(f"https://127.0.0.1:{port}/readyz", server)
        seconds = time.perf_counter() - since
        return etcd_seconds, seconds, megabytes(etcd), megabytes(server)
    finally:
        for process in (server, etcd):
            process.terminate()
        for process in (server, etcd):
            process.wait(60)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument(
        "--assets", type=Path, help="directory with kube-apiserver and etcd; Kubist's by default"
    )
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--warm", action="store_true", help="with the helper of `kubist envtest --warm`")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        assets = given.assets
        if assets is None:
            assets = Path(directory) / "assets"
            command = [
                sys.executable,
                "-m",
                "kubist",
                "envtest",
                *(["--warm"] if given.warm else []),
                str(assets),
            ]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        found = []
        for number in range(given.runs):
            place = Path(directory) / str(number)
            place.mkdir()
            found.append(measure(assets, place))
            shutil.rmtree(place, ignore_errors=True)
    names = ("etcd, s", "kube-apiserver, s", "etcd, MB", "kube-apiserver, MB")
    for name, values in zip(names, zip(*found, strict=True), strict=True):
        low, middle, high = min(values), statistics.median(values), max(values)
        print(f"{name:20} {middle:7.2f}   ({low:.2f} to {high:.2f})")


if __name__ == "__main__":
    main()
