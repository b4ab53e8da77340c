"""CSIDriver: capabilities and requirements of a CSI driver."""

from __future__ import annotations

from collections.abc import Iterable

from kubist.api.kinds.shared.update import immutable
from kubist.api.resources.context import Context
from kubist.api.resources.strategy import Errors, Strategy
from kubist.model.meta import fields
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

    def prepare(self, ctx: Context, new: Object, old: Object | None) -> None:
        if old is None or "preventPodSchedulingIfMissing" not in old["spec"]:
            new["spec"].pop("preventPodSchedulingIfMissing", None)
        # Unlike other kinds, a CSIDriver has no generation until its spec first changes.
        if old is not None and new["spec"] != old["spec"]:
            raise_generation(new, old)

    def validate(self, ctx: Context, new: Object, old: Object | None) -> Errors:
        spec = new["spec"]
        errors = _validate_spec(spec)
        if old is not None:
            before = old["spec"]
            errors += immutable(
                spec.get("attachRequired"), before.get("attachRequired"), "spec.attachedRequired"
            )
            modes = "volumeLifecycleModes"
            errors += immutable(spec.get(modes), before.get(modes), f"spec.{modes}")
        return errors

    def warnings(self, ctx: Context, new: Object, old: Object | None) -> Iterable[str]:
        spec = new["spec"]
        requests = spec.get("tokenRequests")
        if not requests or "serviceAccountTokenInSecrets" in spec:
            return ()
        changed = old is None or requests != old["spec"].get("tokenRequests")
        return (_TOKENS_IN_ATTRIBUTES,) if changed else ()


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
