"""CSIDriver: capabilities and requirements of a CSI driver."""

from __future__ import annotations

from collections.abc import Iterable

from kubist.api.kinds.shared.rules import at_least, at_most, field, nullable, one_of, struct
from kubist.api.kinds.shared.update import immutable
from kubist.api.resources.context import Context
from kubist.api.resources.strategy import Errors, Strategy
from kubist.model.meta import fields, objectmeta
from kubist.model.meta.generation import raise_generation
from kubist.model.meta.object import Object

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
