"""Pod: containers that run together on one node. After creation only its status and a few spec fields can change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from kubist.api.kinds.core.pod_binding import PodBinding
from kubist.api.kinds.core.pod_connect import PodLog, PodProxy, PodStream
from kubist.api.kinds.core.pod_eviction import PodEviction
from kubist.api.kinds.core.pod_resize import PodResize
from kubist.api.kinds.core.pod_status import PodStatus
from kubist.api.kinds.core.pod_update import validate_annotations, validate_update
from kubist.api.kinds.core.pod_validation import validate_again, validate_new, validate_with_exceptions
from kubist.api.kinds.core.podspec import drop_disabled_fields
from kubist.api.kinds.core.podspec.affinity import add_label_keys, merge_label_keys
from kubist.api.kinds.core.podspec.annotations import MIRROR_POD
from kubist.api.kinds.core.podspec.defaults import default_pod_spec, drop_init_container_annotations
from kubist.api.kinds.core.podspec.options import Options
from kubist.api.kinds.core.podspec.profiles import copy_app_armor_annotations
from kubist.api.kinds.core.podspec.resources import default_pod_resources, qos_class, round_up_to_milli
from kubist.api.kinds.core.podspec.warnings import pod_spec_warnings
from kubist.api.kinds.shared.pod_conditions import set_pod_condition
from kubist.api.kinds.shared.update import STATUS_METADATA
from kubist.api.resources.strategy import Errors, Strategy, Subresource, Update
from kubist.base.jsontext.quoting import quoted
from kubist.model.meta import names, objectmeta
from kubist.model.meta.fields import forbidden
from kubist.model.meta.object import Object
from kubist.model.schema.internals import difference

if TYPE_CHECKING:
    from kubist.api.resources.context import Context

_FIELD = "ephemeralContainers"


class PodEphemeralContainers(Update):
    """`/ephemeralcontainers`: adds debug containers to a running pod. Other changes in the body are ignored."""

    restored_fields = ("status", *STATUS_METADATA)
    metadata_rules = ()

    def prepare(self, ctx: Context, new: Object, old: Object) -> None:
        containers = (new.get("spec") or {}).get(_FIELD)
        new["spec"] = {key: value for key, value in old["spec"].items() if key != _FIELD}
        if containers:
            new["spec"][_FIELD] = containers
            drop_disabled_fields(new["spec"], old["spec"])

    def validate(self, ctx: Context, new: Object, old: Object) -> Errors:
        return validate_with_exceptions(
            _validate_ephemeral_containers, new, old, allow_privileged=ctx.config.allow_privileged
        )


def _validate_ephemeral_containers(new: Object, old: Object, options: Options) -> Errors:
    if MIRROR_POD in (old["metadata"].get("annotations") or {}):
        return [forbidden("[]", "static pods do not support ephemeral containers")]
    errors = objectmeta.validate_update(new["metadata"], old["metadata"])
    errors += validate_again(new, options)
    errors += validate_annotations(new, old, options)
    by_name = {container.get("name", ""): container for container in new["spec"].get(_FIELD) or ()}
    for container in old["spec"].get(_FIELD) or ():
        name = container.get("name", "")
        if name not in by_name:
            why = f"existing ephemeral containers {quoted(name)} may not be removed\n"
            errors.append(forbidden(f"spec.{_FIELD}", why))
        elif by_name[name] != container:
            changed = difference("core.EphemeralContainer", container, by_name[name])
            why = f"existing ephemeral containers {quoted(name)} may not be changed\n{changed}"
            errors.append(forbidden(f"spec.{_FIELD}", why))
    return errors


_STATUSES = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")


class PodStrategy(Strategy):
    returns_deleted = True
    generation_fields = ("spec",)
    reset_fields = ("status",)
    metadata_rules = ()
    field_labels: Mapping[str, str] = {
        "spec.nodeName": "spec.nodeName",
        "spec.host": "spec.nodeName",
        "spec.restartPolicy": "spec.restartPolicy",
        "spec.schedulerName": "spec.schedulerName",
        "spec.serviceAccountName": "spec.serviceAccountName",
        "spec.hostNetwork": "spec.hostNetwork",
        "status.phase": "status.phase",
        "status.podIP": "status.podIP",
        "status.podIPs": "status.podIPs",
        "status.nominatedNodeName": "status.nominatedNodeName",
    }
    indexed_fields = ("spec.nodeName",)
    subresources: Mapping[str, Subresource] = {
        "attach": PodStream(of_container=True),
        "binding": PodBinding(),
        "ephemeralcontainers": PodEphemeralContainers(),
        "eviction": PodEviction(),
        "exec": PodStream(of_container=True),
        "log": PodLog(),
        "portforward": PodStream(of_container=False),
        "proxy": PodProxy(),
        "resize": PodResize(),
        "status": PodStatus(),
    }

    def default(self, obj: Object) -> None:
        """Sets the defaults of every PodSpec, and the defaults that apply to pods but not to templates."""
        spec = obj.setdefault("spec", {})
        default_pod_resources(spec)
        default_pod_spec(spec)
        if "enableServiceLinks" not in spec:
            spec["enableServiceLinks"] = True
        if spec["terminationGracePeriodSeconds"] < 0:
            spec["terminationGracePeriodSeconds"] = 1
        if spec.get("hostNetwork"):
            for field in ("containers", "initContainers"):
                for container in spec.get(field) or ():
                    for port in container.get("ports") or ():
                        if not port.get("hostPort") and port.get("containerPort"):
                            port["hostPort"] = port["containerPort"]
        drop_init_container_annotations(obj)
        if obj.get("status"):
            _default_status(obj["status"])

    def prepare(self, ctx: Context, new: Object, old: Object | None) -> None:
        spec = new["spec"]
        if old is not None:
            drop_disabled_fields(spec, old["spec"])
            return
        quality = (new.get("status") or {}).get("qosClass") or qos_class(spec)
        new["status"] = status = {"phase": "Pending", "qosClass": quality}
        drop_disabled_fields(spec)
        if spec.get("schedulingGates"):
            condition = {
                "type": "PodScheduled",
                "status": "False",
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
            }
            set_pod_condition(status, condition, ctx.now)
        if "affinity" in spec or "topologySpreadConstraints" in spec:
            _copy_label_values(spec, new["metadata"].get("labels") or {})
        for warning in copy_app_armor_annotations(new):
            ctx.warn(warning)

    def validate(self, ctx: Context, new: Object, old: Object | None) -> Errors:
        privileged = ctx.config.allow_privileged
        if old is None:
            return validate_new(new, allow_privileged=privileged)
        return validate_with_exceptions(validate_update, new, old, allow_privileged=privileged)

    def warnings(self, ctx: Context, new: Object, old: Object | None) -> Iterable[str]:
        if old is not None:
            return ()
        metadata = new["metadata"]
        warnings = pod_spec_warnings(new["spec"], metadata)
        if problems := names.dns_label(metadata.get("name", "")):
            why = f"a DNS label is recommended: [{' '.join(problems)}]"
            what = "this is used in the Pod's hostname, which can result in surprising behavior"
            warnings.insert(0, f"metadata.name: {what}; {why}")
        return warnings

    def grace_period(self, obj: Object, requested: int | None) -> int | None:
        """0 for pods without a node and for finished pods. Negative periods count as 1 second."""
        spec = obj["spec"]
        phase = (obj.get("status") or {}).get("phase")
        if not spec.get("nodeName") or phase in ("Failed", "Succeeded"):
            return 0
        period: int = spec.get("terminationGracePeriodSeconds", 0) if requested is None else requested
        return period if period >= 0 else 1

    def selectable_fields(self, obj: Object) -> dict[str, str]:
        spec, status = obj.get("spec") or {}, obj.get("status") or {}
        addresses = status.get("podIPs")
        return {
            "spec.nodeName": spec.get("nodeName", ""),
            "spec.host": spec.get("nodeName", ""),
            "spec.restartPolicy": spec.get("restartPolicy", ""),
            "spec.schedulerName": spec.get("schedulerName", ""),
            "spec.serviceAccountName": spec.get("serviceAccountName", ""),
            "spec.hostNetwork": "true" if spec.get("hostNetwork") else "false",
            "status.phase": status.get("phase", ""),
            "status.podIP": addresses[0].get("ip", "") if addresses else "",
            "status.podIPs": "",
            "status.nominatedNodeName": status.get("nominatedNodeName", ""),
        }


def _copy_label_values(spec: Object, labels: dict[str, str]) -> None:
    """Resolves matchLabelKeys and mismatchLabelKeys: adds the pod's own label values to the selectors."""
    if labels and "affinity" in spec:
        merge_label_keys(spec["affinity"], labels)
    for constraint in spec.get("topologySpreadConstraints") or ():
        if constraint.get("labelSelector") is not None:
            add_label_keys(constraint["labelSelector"], constraint.get("matchLabelKeys"), "In", labels)


def _default_status(status: Object) -> None:
    """Makes podIP equal to the first of podIPs. If they differ, podIP wins, because it is the older field."""
    address, addresses = status.get("podIP"), status.get("podIPs")
    if address and (not addresses or addresses[0].get("ip") != address):
        status["podIPs"] = [{"ip": address}]
    elif addresses and addresses[0].get("ip"):
        status["podIP"] = addresses[0]["ip"]
    for field in _STATUSES:
        for container in status.get(field) or ():
            _round_up(container)
    _round_up(status)


def _round_up(status: Object) -> None:
    """Rounds up the amounts in the status of a container or of the pod."""
    round_up_to_milli(status.get("allocatedResources"))
    resources = status.get("resources") or {}
    round_up_to_milli(resources.get("limits"))
    round_up_to_milli(resources.get("requests"))


strategy = PodStrategy()
