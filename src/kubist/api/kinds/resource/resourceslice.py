"""ResourceSlice: devices that a driver offers, on one node or on several."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kubist.api.kinds.resource.common import each, validate_label, validate_pool_name
from kubist.api.kinds.resource.devices import (
    drop_disabled,
    validate_counters,
    validate_device,
    validate_node_choice,
)
from kubist.api.kinds.shared.update import immutable
from kubist.api.kinds.storage.common import validate_driver_name
from kubist.api.resources.context import Context
from kubist.api.resources.strategy import Errors, Strategy
from kubist.base.jsontext.quoting import quoted
from kubist.model.meta import fields, times
from kubist.model.meta.object import Object
from kubist.model.meta.objectmeta import raise_generation

_CHOICES = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")


class ResourceSliceStrategy(Strategy):
    returns_deleted = True
    generation_fields = ("spec",)
    namespace_selectable = False
    field_labels: Mapping[str, str] = {"spec.nodeName": "spec.nodeName", "spec.driver": "spec.driver"}

    def default(self, obj: Object) -> None:
        for device in (obj.get("spec") or {}).get("devices") or ():
            for taint in device.get("taints") or ():
                if not taint.get("timeAdded"):
                    taint["timeAdded"] = times.now()

    def prepare(self, ctx: Context, new: Object, old: Object | None) -> None:
        """Raises the generation also if only dropped fields changed."""
        if old is not None and new.get("spec") != old.get("spec"):
            raise_generation(new, old)
        drop_disabled(new.get("spec") or {}, (old or {}).get("spec") or {})

    def validate(self, ctx: Context, new: Object, old: Object | None) -> Errors:
        return _validate(new.get("spec") or {}, (old.get("spec") or {}) if old is not None else None)

    def warnings(self, ctx: Context, new: Object, old: Object | None) -> Iterable[str]:
        driver = (new.get("spec") or {}).get("driver", "")
        if driver == driver.lower():
            return ()
        shown = quoted(driver)
        return (f"spec.driver: driver names should be lowercase; {shown} contains uppercase characters",)


def _validate(spec: Object, old: Object | None) -> Errors:
    pool = spec.get("pool") or {}
    errors = validate_driver_name(spec.get("driver", ""), "spec.driver")
    errors += validate_pool_name(pool.get("name", ""), "spec.pool.name")
    count, generation = pool.get("resourceSliceCount", 0), pool.get("generation", 0)
    if count <= 0:
        errors.append(fields.invalid("spec.pool.resourceSliceCount", count, "must be greater than zero"))
    if generation < 0:
        why = "must be greater than or equal to zero"
        errors.append(fields.invalid("spec.pool.generation", generation, why))
    if old is not None:
        errors += immutable(pool.get("name"), (old.get("pool") or {}).get("name"), "spec.pool.name", "string")
        errors += immutable(spec.get("driver"), old.get("driver"), "spec.driver", "string")
        errors += immutable(spec.get("nodeName"), old.get("nodeName"), "spec.nodeName")
    errors += _validate_nodes(spec)
    devices, counters = spec.get("devices") or [], spec.get("sharedCounters") or []
    if spec.get("devices") is not None and spec.get("sharedCounters") is not None:
        errors.append(fields.invalid("spec", "", "only one of `sharedCounters` or `devices` is allowed"))
    known = {device.get("name", ""): device for device in (old or {}).get("devices") or ()}
    per_device = spec.get("perDeviceNodeSelection") or False
    advanced = any(device.get("taints") or device.get("consumesCounters") for device in devices)
    errors += each(
        devices,
        64 if advanced else 128,
        "spec.devices",
        lambda device, path: validate_device(device, known.get(device.get("name", "")), path, per_device),
        lambda device: device.get("name", ""),
    )
    return errors + each(
        counters, 8, "spec.sharedCounters", _validate_counter_set, lambda found: found.get("name", "")
    )


def _validate_nodes(spec: Object) -> Errors:
    errors, chosen = validate_node_choice(
        spec, "spec", empty_name="must be either unset or set to a non-empty string", one_term=True
    )
    per_device = spec.get("perDeviceNodeSelection")
    if per_device:
        chosen.append("perDeviceNodeSelection")
    elif per_device is not None:
        why = "must be either unset or set to true"
        errors.append(fields.invalid("spec.perDeviceNodeSelection", per_device, why))
    why = f"exactly one of {', '.join(f'`{name}`' for name in _CHOICES)} is required"
    if not chosen:
        errors.append(fields.required("spec", why))
    elif len(chosen) > 1:
        shown = f"{{{', '.join(f'`{name}`' for name in chosen)}}}"
        errors.append(fields.invalid("spec", shown, f"{why}, but multiple fields are set"))
    return errors


def _validate_counter_set(found: Object, path: str) -> Errors:
    name = found.get("name", "")
    errors = validate_label(name, f"{path}.name") if name else [fields.required(f"{path}.name")]
    return errors + validate_counters(found.get("counters"), f"{path}.counters")


strategy = ResourceSliceStrategy()
