"""CRDs of operators that are published as Python packages. The tests fetch and install them.

Without a package index the tests are skipped.
"""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml

from kubist.model.meta.object import Object
from tests.crd.defining import CRDS, define
from tests.live import Live

PACKAGE = "dask-kubernetes"
KIND = "CustomResourceDefinition"
FETCH_SECONDS = 60
CONTAINER = {
    "name": "worker",
    "image": "dask:1",
    "args": ["dask", "worker"],
    "ports": [{"containerPort": 8786, "name": "tcp"}],
    "resources": {"limits": {"cpu": "1", "memory": "1Gi"}},
}
POD = {"containers": [CONTAINER], "restartPolicy": "Never"}
SERVICE = {
    "type": "ClusterIP",
    "ports": [{"name": "tcp", "port": 8786, "targetPort": "tcp", "protocol": "TCP"}],
}
SAMPLES: dict[str, Object] = {
    "DaskCluster": {
        "worker": {"replicas": 2, "spec": POD},
        "scheduler": {"spec": POD, "service": SERVICE},
    },
    "DaskWorkerGroup": {"cluster": "c", "worker": {"replicas": 2, "spec": POD}},
    "DaskAutoscaler": {"cluster": "c", "minimum": 1, "maximum": 9},
    "DaskJob": {
        "job": {"spec": POD},
        "cluster": {
            "spec": {
                "worker": {"replicas": 1, "spec": POD},
                "scheduler": {"spec": POD, "service": SERVICE},
            }
        },
    },
}


@pytest.fixture(scope="module")
def definitions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Object]:
    """By kind."""
    where = tmp_path_factory.mktemp("published")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(where), PACKAGE]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=FETCH_SECONDS)
    except (OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"{PACKAGE} cannot be fetched: {error}")
    return {crd["spec"]["names"]["kind"]: crd for wheel in where.glob("*.whl") for crd in _inside(wheel)}


def _inside(wheel: Path) -> list[Object]:
    found: list[Object] = []
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if "/crds/" in name and name.endswith(".yaml"):
                documents = yaml.load_all(archive.read(name), Loader=yaml.CSafeLoader)
                found += [one for one in documents if isinstance(one, dict) and one.get("kind") == KIND]
    return found


def test_published_crds_install_and_return_their_objects(live: Live, definitions: dict[str, Object]) -> None:
    client = live.client
    assert definitions.keys() >= SAMPLES.keys()
    for kind, spec in SAMPLES.items():
        at = define(client, definitions[kind])
        names, group = definitions[kind]["spec"]["names"], definitions[kind]["spec"]["group"]
        path = f"{at}/v1/namespaces/default/{names['plural']}"
        sample = {"apiVersion": f"{group}/v1", "kind": kind, "metadata": {"name": "a"}, "spec": spec}
        made = client.post(path, sample)
        assert made["spec"].keys() >= spec.keys() and client.get(f"{path}/a") == made
        assert client.put(f"{path}/a", made) == made
        wrong = client.ask("POST", path, {**sample, "metadata": {"name": "b"}, "spec": {"cluster": 5}})
        assert wrong.status == 422 and wrong.json["details"]["causes"]
        conditions = client.get(f"{CRDS}/{definitions[kind]['metadata']['name']}")["status"]["conditions"]
        assert {c["type"]: c["status"] for c in conditions} == {
            "NamesAccepted": "True",
            "Established": "True",
        }
