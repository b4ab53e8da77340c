"""Strategies: the hooks and data that a kind adds to the generic verbs. A kind without a module gets `Strategy()`.

The module of a kind is `api/kinds/<group>/<kind in lower case>.py`; its strategy is named `strategy`. Hooks get dicts
in the stored version, decoded and canonical, and change them in place. They never see HTTP.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from kubist.model.meta import names, selectors
from kubist.model.meta.fields import FieldError
from kubist.model.meta.object import Object

if TYPE_CHECKING:
    from kubist.api.resources.allocations import Allocations
    from kubist.api.resources.context import Context
    from kubist.base.http.messages import Answer

Errors = list[FieldError]
MetadataRules = Literal["object", "update"]


class Update:
    """Rules for updates through one path: the object itself, or a subresource such as status.

    The verb has already restored the system's metadata (uid, creationTimestamp, deletionTimestamp, …).
    """

    reset_fields: tuple[str, ...] = ()
    """Dotted paths that this path never changes. The verb restores them before `prepare`, and no manager owns them."""
    restored_fields: tuple[str, ...] | None = None
    """Dotted paths that the verb restores, if they are not the `reset_fields`."""
    metadata_rules: tuple[MetadataRules, ...] = ("update",)
    """Validation of the metadata that comes before `validate` on an update, in this order: `update` (only the change)
    or `object` (as on a create). The verb has validated the metadata already, so causes repeat, as in kube-apiserver. A
    kind whose errors have a different order omits a rule and calls `objectmeta` itself."""
    creates = False
    """Whether an apply to this subresource creates an absent object."""

    def prepare(self, ctx: Context, new: Object, old: Object) -> None:
        """Restores other fields that must not change through this path, and sets system fields."""

    def validate(self, ctx: Context, new: Object, old: Object) -> Errors:
        """Errors of the object and of the change. The verb validates metadata."""
        return []

    def warnings(self, ctx: Context, new: Object, old: Object) -> Iterable[str]:
        return ()

    def before_write(
        self, ctx: Context, new: Object, old: Object, allocations: Allocations
    ) -> Awaitable[None] | None:
        """Allocates resources outside the object (addresses, ports) and may set fields, or rejects a write by rules
        that need an await. Runs first, before preparation and validation. `allocations` releases the resources unless
        the object is stored. In a dry run (`ctx.dry_run`) nothing may be allocated. A hook without awaitable work
        returns None."""
        return None

    def after_update(self, ctx: Context, new: Object, old: Object) -> Awaitable[None] | None:
        """Releases resources that the object no longer needs. Runs after the write; never in a dry run."""
        return None


class Status(Update):
    """Usual `/status`: restores spec. Kinds with other rules override it."""

    reset_fields: tuple[str, ...] = ("spec",)


class Scale:
    """`/scale` subresource: replicas of a workload as an autoscaling/v1 Scale."""

    spec_replicas = "spec.replicas"
    status_replicas = "status.replicas"
    selector = "spec.selector"
    """Dotted path of the label selector, an object or its text form. The text form is the scale's status.selector."""
    plain_selector = False
    """Whether the selector is a plain map of labels."""

    def values(self, obj: Object) -> tuple[int | None, int, str]:
        """Desired replicas (None if unset), actual replicas, and the selector's text."""
        chosen = at(obj, self.selector)
        if isinstance(chosen, str):
            text = chosen
        elif self.plain_selector:
            text = ",".join(f"{key}={value}" for key, value in sorted((chosen or {}).items()))
        else:
            text = selectors.format_label_selector(chosen) if chosen is not None else ""
        return at(obj, self.spec_replicas), at(obj, self.status_replicas) or 0, text


class Create:
    """Subresource or virtual resource that only accepts POST: binding, eviction, token, reviews."""

    group = ""
    version = "v1"
    kind = ""
    """Kind of the request body."""
    accepts: tuple[tuple[str, str], ...] = ()
    """Further (group, version) pairs of the kind that are accepted."""
    managed = False
    """Whether the response has managedFields."""

    def default(self, body: Object) -> None:
        """Sets the defaults of the body."""

    async def create(self, ctx: Context, body: Object) -> Object:
        """Performs the operation on the parent `ctx.name`. Returns the body of the 201 response: a Status or an
        object."""
        raise AssertionError("subclasses must override create")


class Connect:
    """Subresource that is not an object: log, exec, attach, portforward, proxy."""

    methods: tuple[str, ...] = ("GET", "POST")
    negotiated = False
    """Whether the Accept header must match a supported media type, although the response does not use it."""

    async def connect(self, ctx: Context) -> tuple[int, str, bytes] | Answer:
        """Status code, content type and body of the response, or the whole response. Raises APIError on failure."""
        raise AssertionError("subclasses must override connect")


Subresource = Update | Scale | Create | Connect


class Strategy(Update):
    """Strategy of a kind. Attributes are data; methods are rules that need code.

    `prepare`, `validate`, `warnings` and `before_write` get the stored object as `old`, or None on a create."""

    first_status: ClassVar[Object | None] = None
    """Status of a new object, whatever the client sent. None: the verb leaves the status as it is."""

    create_on_update = False
    """Whether PUT of an absent object creates it."""
    unconditional_update = True
    """Whether PUT without a resourceVersion overwrites the object."""
    returns_deleted = False
    """Whether DELETE returns the object instead of a Status."""
    default_propagation: Literal["Background", "Orphan", "Unsupported"] = "Background"
    """Propagation policy of a delete without a policy. Unsupported: policies are ignored (events)."""
    keeps_propagation = False
    """Whether a kind with `mark_deleted` also gets the finalizers of the propagation policy (namespaces)."""
    generation_fields: tuple[str, ...] = ()
    """Top-level fields whose change increments metadata.generation, which starts at 1. Empty: no generation."""
    empty_is_change: bool = False
    """Whether an empty value sent in the generation fields counts as a change, although it is not stored."""
    precondition_kind = ""
    """Resource name in the conflict of a failed delete precondition, if it is not the Kind."""
    qualified_finalizers = True
    """Whether finalizers must have a domain. False for custom resources and a few other kinds."""
    lenient_metadata = False
    """Whether the kind's own validation comes first (events, budgets, claims). Metadata then gets only the minimal
    validation, and only if the kind finds no errors."""
    validate_name: Callable[[str, bool], list[str]] = staticmethod(names.dns_subdomain)
    """Error messages for a name, or with True for a generateName."""
    validates_metadata = False
    """Whether `validate` validates the metadata of a new object too, because other rules depend on its errors."""
    ttl_flag = ""
    """Name of the configuration value with the lifetime of objects in seconds: `event_ttl`."""

    field_labels: Mapping[str, str] = {}
    """Selectable fields besides metadata.name and metadata.namespace: label → dotted path in the object."""
    stored_labels: Mapping[str, str] = {}
    """Label → label of the stored kind, if objects are stored as another kind (events.k8s.io)."""
    converted_annotations: tuple[str, ...] = ()
    """Annotations that represent fields of older versions. PartialObjectMetadata does not show them."""
    deprecation: str = ""
    """Warning in every response for the kind, errors included."""
    indexed_fields: tuple[str, ...] = ()
    """Selectable fields that kube-apiserver indexes. A limited list by an exact value of such a field has a continue
    token only if more objects match."""
    namespace_selectable = True
    """Whether `metadata.namespace` is a selectable field. False for a few cluster-scoped kinds."""

    cached = True
    """Whether kube-apiserver caches the kind. False for events; resourceVersion options then behave differently."""

    subresources: Mapping[str, Subresource] = {}
    virtual: Create | None = None
    """Handler of POST for a kind that is never stored."""

    def virtual_objects(self, namespace: str = "") -> Iterable[Object] | None:
        """Objects of a computed kind, in one namespace or in all; None for stored kinds."""
        return None

    def generate_name(self, base: str) -> str:
        return names.generate(base)

    def default(self, obj: Object) -> None:
        """Sets the defaults. Runs after every decode, in the version that the client sent."""

    def default_stored(self, obj: Object) -> None:
        """Sets fields that older versions did not store, in addition to the defaults. Only for values that another
        server wrote."""

    def prepare(self, ctx: Context, new: Object, old: Object | None) -> None:
        """Drops or restores fields that clients must not set, and sets system fields."""

    def validate(self, ctx: Context, new: Object, old: Object | None) -> Errors:
        return []

    def warnings(self, ctx: Context, new: Object, old: Object | None) -> Iterable[str]:
        return ()

    def before_write(
        self, ctx: Context, new: Object, old: Object | None, allocations: Allocations
    ) -> Awaitable[None] | None:
        return None

    def complete_bookmark(self, obj: Object) -> None:
        """Completes the empty object of a bookmark with fields besides the zero values of its schema."""

    def before_delete(self, ctx: Context, name: str, propagation: str) -> None:
        """Rejects a delete, or warns. `name` is empty for deletecollection. `propagation` is the requested policy,
        or ""."""

    async def after_delete(self, ctx: Context, obj: Object) -> None:
        """Releases resources of a deleted object."""

    def grace_period(self, obj: Object, requested: int | None) -> int | None:
        """Seconds between a delete and the removal; None if the kind has no graceful deletion."""
        return None

    def mark_deleted(self, ctx: Context, obj: Object) -> bool | None:
        """Marks an object of a kind with its own deletion rules (namespaces, CRDs). True: marked now. False:
        already marked. None: the usual deletion applies."""
        return None

    def blocks_removal(self, obj: Object) -> bool:
        """Whether a marked object of such a kind must not be removed yet."""
        return bool(obj["metadata"].get("finalizers"))

    def selectable_fields(self, obj: Object) -> dict[str, str]:
        """Values of `field_labels`. Kinds override it for values that are not the text at a path."""
        return {label: text_at(obj, path) for label, path in self.field_labels.items()}

    def unsupported_field_label(self, label: str) -> str:
        """Error message for an unsupported field selector."""
        if self.field_labels:
            return f"field label not supported: {label}"
        return f'"{label}" is not a known field selector: only "metadata.name", "metadata.namespace"'

    def convert(self, obj: Object, api_version: str) -> Object:
        """`obj` in another served version. Only kinds with several versions override it."""
        obj["apiVersion"] = api_version
        return obj


def at(obj: Any, path: str) -> Any:
    """Value at a dotted path of plain field names, or None."""
    for part in path.split("."):
        if not isinstance(obj, dict):
            return None
        obj = obj.get(part)
    return obj


def text_at(obj: Object, path: str) -> str:
    value = at(obj, path)
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def keep(new: Object, old: Object, *fields: str) -> None:
    """Restores the old value of each dotted path in `new`; removes it if `old` has none."""
    for path in fields:
        if "." not in path:
            if path in old:
                new[path] = old[path]
            elif path in new:
                del new[path]
            continue
        *parents, last = path.split(".")
        source: Any = old
        target: Any = new
        for part in parents:
            source = source.get(part) if isinstance(source, dict) else None
            if part not in target:
                if source is None:
                    break
                target[part] = {}
            target = target[part]
        else:
            if isinstance(source, dict) and last in source:
                target[last] = source[last]
            else:
                target.pop(last, None)
