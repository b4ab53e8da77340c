"""The operator: handlers of Sites. The environment variable LOGIC chooses `buggy` or `fixed`."""

import importlib
import os
import threading
from typing import Any

import kopf
import kubernetes

logic = importlib.import_module(os.environ.get("LOGIC", "buggy"))


def core() -> kubernetes.client.CoreV1Api:
    return kubernetes.client.CoreV1Api(kubernetes.config.new_client_from_config())


@kopf.on.startup()
def start(settings: kopf.OperatorSettings, **_: Any) -> None:
    settings.posting.enabled = False
    threading.Thread(target=logic.follow_pages, args=(core(), set()), daemon=True).start()


@kopf.on.create("sites.example.com")
@kopf.on.update("sites.example.com", field="spec")
def reconcile(name: str, spec: kopf.Spec, patch: kopf.Patch, **_: Any) -> None:
    client = core()
    logic.register(client, name, spec["title"])
    logic.ensure_theme(client, name)
    patch.status["pages"] = logic.count_pages(client)
    patch.status["title"] = spec["title"]
