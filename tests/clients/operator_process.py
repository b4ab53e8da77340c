"""Operator for `test_kopf`: writes to the status of a widget what it has seen."""

from typing import Any

import kopf


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    settings.posting.enabled = False


@kopf.on.create("widgets.example.com")
def created(spec: kopf.Spec, patch: kopf.Patch, **_: Any) -> None:
    patch.status["seen"] = spec.get("size")


@kopf.on.update("widgets.example.com", field="spec.size")
def updated(old: Any, new: Any, patch: kopf.Patch, **_: Any) -> None:
    patch.status["seen"] = new
    patch.status["before"] = old


@kopf.on.delete("widgets.example.com")
def deleted(name: str, **_: Any) -> None:
    print(f"saying goodbye to {name}", flush=True)
