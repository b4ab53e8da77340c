"""CSIDriver: capabilities and requirements of a CSI driver."""

from __future__ import annotations

from collections.abc import Iterable

from kubist.api.kinds.shared.rules import at_least, at_most, field, nullable, one_of, struct
from kubist.api.kinds.shared.update import immutable
from kubist.api.resources.context import Context
from kubist.api.resources.strategy import Errors, Strategy
from kubist.model.meta import fields
from kubist.model.meta.object import Object
from kubist.model.meta.objectmeta import raise_generation

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


def _validate_token_requests(requests: list[Object] | None, path: str) -> Errors:
    errors: Errors = []
    audiences = set()
    for index, request in enumerate(requests or ()):
        audience = request.get("audience", "")
        if audience in audiences:
            errors.append(fields.duplicate(f"{path}[{index}].audience", audience))
        else:
            errors += _LIFETIME(request, f"{path}[{index}]")
        audiences.add(audience)
    return errors


def _validate_modes(modes: list[str] | None, path: str) -> Errors:
    return [error for mode in modes or () for error in _MODE(mode, path)]


def _validate_secrets(spec: Object, path: str) -> Errors:
    in_secrets = spec.get("serviceAccountTokenInSecrets")
    if in_secrets is None or spec.get("tokenRequests"):
        return []
    why = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
    return [fields.invalid(f"{path}.serviceAccountTokenInSecrets", in_secrets, why)]


_MODE = one_of("Persistent", "Ephemeral")
_LIFETIME = field(
    "expirationSeconds",
    nullable,
    at_least(600, "may not specify a duration less than 10 minutes"),
    at_most(1 << 32, "may not specify a duration larger than 2^32 seconds"),
)


def _validate_spec(spec: Object) -> Errors:
    rules = struct(
        field("fsGroupPolicy", nullable, one_of("File", "None", "ReadWriteOnceWithFSType")),
        field("tokenRequests", _validate_token_requests),
        field("volumeLifecycleModes", _validate_modes),
        field(
            "nodeAllocatableUpdatePeriodSeconds",
            nullable,
            at_least(10, "must be greater than or equal to 10 seconds"),
        ),
        _validate_secrets,
    )
    return rules(spec, "spec")


strategy = CSIDriverStrategy()
