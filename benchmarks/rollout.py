"""Simulated workloads: time until the pods of new Deployments are ready, and latency of the API meanwhile.

    python benchmarks/rollout.py [--deployments 10] [--replicas 100] [--delete]

`kubist serve --workloads --in-memory` runs in a process of its own. A watch counts the ready pods; one client gets and
writes a ConfigMap all the time.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import signal
import ssl
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from base64 import b64decode
from pathlib import Path
from typing import Any

import yaml

PODS = "/api/v1/namespaces/default/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
MAPS = "/api/v1/namespaces/default/configmaps"
_TICK = os.sysconf("SC_CLK_TCK")
PATIENCE = 300.0


class Server:
    def __init__(self, directory: Path) -> None:
        kubeconfig = directory / "kubeconfig"
        command = [
            sys.executable,
            "-m",
            "kubist",
            "serve",
            "--workloads",
            "--in-memory",
            "--secure-port",
            "0",
        ]
        command += ["--workload-nodes", "10", "--kubeconfig", str(kubeconfig)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while not kubeconfig.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        read = yaml.safe_load(kubeconfig.read_text())
        cluster, user = read["clusters"][0]["cluster"], read["users"][0]["user"]
        self.address = cluster["server"].removeprefix("https://")
        self.context = ssl.create_default_context(
            cadata=b64decode(cluster["certificate-authority-data"]).decode()
        )
        self.headers = {"Content-Type": "application/json"}
        if "token" in user:
            self.headers["Authorization"] = f"Bearer {user['token']}"
        else:
            pem = directory / "client.pem"
            pem.write_bytes(b64decode(user["client-certificate-data"]) + b64decode(user["client-key-data"]))
            self.context.load_cert_chain(pem)

    def connect(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(self.address, context=self.context, timeout=PATIENCE)

    def ask(self, connection: http.client.HTTPSConnection, method: str, path: str, body: Any = None) -> Any:
        connection.request(method, path, json.dumps(body) if body is not None else None, self.headers)
        response = connection.getresponse()
        answer = json.loads(response.read())
        if response.status >= 400:
            raise RuntimeError(answer.get("message"))
        return answer

    def cpu(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICK

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)


def deployment(number: int, replicas: int) -> dict[str, Any]:
    labels = {"app": f"app-{number}"}
    resources = {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"memory": "32Mi"}}
    container = {"name": "main", "image": "registry.example/app:1", "resources": resources}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": f"app-{number}"},
        "spec": spec,
    }


def follow(server: Server, path: str, wanted: int, is_done: Any, done: threading.Event) -> None:
    """Watches objects until `wanted` of them are done."""
    connection = server.connect()
    connection.request("GET", f"{path}?watch=1", headers=server.headers)
    found: set[str] = set()
    for line in connection.getresponse():
        event = json.loads(line)
        name = event["object"]["metadata"]["name"]
        if is_done(event):
            found.add(name)
        else:
            found.discard(name)
        if len(found) == wanted:
            done.set()
            break
    connection.close()


def is_complete(event: dict[str, Any]) -> bool:
    found = event["object"]
    return bool(found["status"].get("availableReplicas") == found["spec"]["replicas"])


def probe(server: Server, end: threading.Event, latencies: list[float]) -> None:
    connection = server.connect()
    server.ask(connection, "POST", MAPS, {"metadata": {"name": "probe"}, "data": {"a": "b"}})
    number = 0
    while not end.is_set():
        number += 1
        began = time.perf_counter()
        if number % 4:
            server.ask(connection, "GET", f"{MAPS}/probe")
        else:
            server.ask(
                connection,
                "PUT",
                f"{MAPS}/probe",
                {"metadata": {"name": "probe"}, "data": {"a": str(number)}},
            )
        latencies.append(time.perf_counter() - began)
        end.wait(0.002)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--deployments", type=int, default=10)
    parser.add_argument("--replicas", type=int, default=100)
    parser.add_argument("--delete", action="store_true", help="also measure the deletion of all pods")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        server = Server(Path(temporary))
        try:
            measure(server, options.deployments, options.replicas, delete=options.delete)
        finally:
            server.stop()


def measure(server: Server, deployments: int, replicas: int, *, delete: bool) -> None:
    connection = server.connect()
    while (
        sum(
            condition["type"] == "Ready" and condition["status"] == "True"
            for node in server.ask(connection, "GET", "/api/v1/nodes")["items"]
            for condition in node["status"].get("conditions") or ()
        )
        < 10
    ):
        time.sleep(0.1)
    end, latencies = threading.Event(), []
    prober = threading.Thread(target=probe, args=(server, end, latencies))
    prober.start()
    total = deployments * replicas
    for name, path, wanted, is_done in (("deployments available", DEPLOYMENTS, deployments, is_complete),):
        done = threading.Event()
        follower = threading.Thread(target=follow, args=(server, path, wanted, is_done, done))
        follower.start()
        time.sleep(0.3)
        latencies.clear()
        began, cpu = time.perf_counter(), server.cpu()
        for number in range(deployments):
            server.ask(connection, "POST", DEPLOYMENTS, deployment(number, replicas))
        done.wait(PATIENCE)
        report(f"{total} pods, {name}", time.perf_counter() - began, server.cpu() - cpu, latencies)
    time.sleep(2)
    spent = server.cpu()
    version = int(server.ask(connection, "GET", f"{MAPS}/probe")["metadata"]["resourceVersion"])
    events = len(server.ask(connection, "GET", "/api/v1/namespaces/default/events")["items"])
    print(f"{'':32} {events} Events; CPU in all {spent:.1f} s; revision {version}")
    if delete:
        gone = threading.Event()
        began, cpu = time.perf_counter(), server.cpu()
        latencies.clear()
        for number in range(deployments):
            server.ask(connection, "DELETE", f"{DEPLOYMENTS}/app-{number}")
        while server.ask(connection, "GET", f"{PODS}?limit=1")["items"] and not gone.wait(0.05):
            pass
        report(f"{total} pods deleted", time.perf_counter() - began, server.cpu() - cpu, latencies)
    end.set()
    prober.join()


def report(what: str, seconds: float, cpu: float, latencies: list[float]) -> None:
    ranked = statistics.quantiles(latencies, n=100) if len(latencies) > 2 else [0.0] * 99
    print(
        f"{what:32} {seconds:6.2f} s, CPU {cpu:6.2f} s; API p50 {ranked[49] * 1e3:.1f} ms, "
        f"p99 {ranked[98] * 1e3:.1f} ms, {len(latencies)} requests"
    )


if __name__ == "__main__":
    main()
