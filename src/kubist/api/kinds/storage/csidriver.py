"""CSIDriver: capabilities and requirements of a CSI driver."""

from __future__ import annotations

from collections.abc import Iterable

from kubist.api.kinds.shared.update import immutable
from kubist.api.resources.context import Context
from kubist.api.resources.strategy import Errors, Strategy
from kubist.model.meta import fields, objectmeta
from kubist.model.meta.object import Object
from kubist.model.meta.objectmeta import raise_generation

_FS_GROUP_POLICIES = ("File", "None", "ReadWriteOnceWithFSType")
_LIFECYCLE_MODES = ("Persistent", "Ephemeral")
_DEFAULTS = {
    "attachRequired": True,
    "podInfoOnMount": False,
    "storageCapacity": False,
    "fsGroupPolicy": "ReadWriteOnceWithFSType",
    "requiresRepublish": False,
    "seLinuxMount": False,
}
_TOKENS_IN_ATTRIBUTES = (
    "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent "
    "possible logging of tokens in volume attributes"
)


class CSIDriverStrategy(Strategy):
    returns_deleted = True
    unconditional_update = False

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        for name, value in _DEFAULTS.items():
            spec.setdefault(name, value)
        if not spec.get("volumeLifecycleModes"):
            spec["volumeLifecycleModes"] = ["Persistent"]

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        obj["spec"].pop("preventPodSchedulingIfMissing", None)

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        if "preventPodSchedulingIfMissing" not in old["spec"]:
            new["spec"].pop("preventPodSchedulingIfMissing", None)
        # Unlike other kinds, a CSIDriver has no generation until its spec first changes.
        if new["spec"] != old["spec"]:
            raise_generation(new, old)

    def validate_create(self, ctx: Context, obj: Object) -> Errors:
        return _validate_spec(obj["spec"])

    def validate_update(self, ctx: Context, new: Object, old: Object) -> Errors:
        errors = objectmeta.validate_update(new["metadata"], old["metadata"])
        errors += _validate_spec(new["spec"])
        errors += immutable(
            new["spec"].get("attachRequired"), old["spec"].get("attachRequired"), "spec.attachedRequired"
        )
        return errors + immutable(
            new["spec"].get("volumeLifecycleModes"),
            old["spec"].get("volumeLifecycleModes"),
            "spec.volumeLifecycleModes",
        )

    def warnings_on_create(self, ctx: Context, obj: Object) -> Iterable[str]:
        spec = obj["spec"]
        if spec.get("tokenRequests") and "serviceAccountTokenInSecrets" not in spec:
            return (_TOKENS_IN_ATTRIBUTES,)
        return ()

    def warnings_on_update(self, ctx: Context, new: Object, old: Object) -> Iterable[str]:
        if new["spec"].get("tokenRequests") == old["spec"].get("tokenRequests"):
            return ()
        return self.warnings_on_create(ctx, new)


def _validate_spec(spec: Object) -> Errors:
    errors = []
    policy = spec.get("fsGroupPolicy")
    if policy is not None and policy not in _FS_GROUP_POLICIES:
        errors.append(fields.not_supported("spec.fsGroupPolicy", policy, _FS_GROUP_POLICIES))
    errors += _validate_token_requests(spec.get("tokenRequests") or [])
    errors += [
        fields.not_supported("spec.volumeLifecycleModes", mode, _LIFECYCLE_MODES)
        for mode in spec.get("volumeLifecycleModes") or ()
        if mode not in _LIFECYCLE_MODES
    ]
    period = spec.get("nodeAllocatableUpdatePeriodSeconds")
    if period is not None and period < 10:
        errors.append(
            fields.invalid(
                "spec.nodeAllocatableUpdatePeriodSeconds",
                period,
                "must be greater than or equal to 10 seconds",
            )
        )
    in_secrets = spec.get("serviceAccountTokenInSecrets")
    if in_secrets is not None and not spec.get("tokenRequests"):
        errors.append(
            fields.invalid(
                "spec.serviceAccountTokenInSecrets",
                in_secrets,
                "serviceAccountTokenInSecrets is set but no tokenRequests are specified",
            )
        )
    return errors


def _validate_token_requests(requests: list[Object]) -> Errors:
    errors: Errors = []
    audiences = set()
    for index, request in enumerate(requests):
        path = f"spec.tokenRequests[{index}]"
        audience = request.get("audience", "")
        if audience in audiences:
            errors.append(fields.duplicate(f"{path}.audience", audience))
            continue
        audiences.add(audience)
        seconds = request.get("expirationSeconds")
        if seconds is None:
            continue
        if seconds < 600:
            why = "may not specify a duration less than 10 minutes"
            errors.append(fields.invalid(f"{path}.expirationSeconds", seconds, why))
        if seconds > 1 << 32:
            why = "may not specify a duration larger than 2^32 seconds"
            errors.append(fields.invalid(f"{path}.expirationSeconds", seconds, why))
    return errors


strategy = CSIDriverStrategy()
