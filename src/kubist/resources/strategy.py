"""What a kind may add to the generic verbs. A kind with nothing special has no module and gets `Strategy()`.

A kind's module is `kinds/<group>/<kind in lower case>.py` and names its strategy `strategy`. Hooks get plain
dicts in the stored version, already decoded and canonical, and change them in place; they never see HTTP.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from kubist.meta import names, selectors
from kubist.meta.fields import FieldError

if TYPE_CHECKING:
    from kubist.resources.context import Context

Object = dict[str, Any]
Undo = Callable[[], Awaitable[None]]
Errors = list[FieldError]


class Update:
    """How an existing object may change through one path: the object itself or a sub-resource such as status.

    The verb has already carried over the system's metadata (uid, creationTimestamp, deletionTimestamp, …).
    """

    reset_fields: ClassVar[tuple[str, ...]] = ()
    """Dotted paths that this way of writing never changes: undone by `prepare_for_update`, never owned."""
    creates: ClassVar[bool] = False
    """Of a sub-resource: whether an object that is absent is made when this is applied to."""

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        """Undo what may not change this way; set what the system sets (generation)."""

    def validate_update(self, ctx: Context, new: Object, old: Object) -> Errors:
        """All that is wrong with the change, metadata excluded (the verb checks that)."""
        return []

    def warnings_on_update(self, ctx: Context, new: Object, old: Object) -> Iterable[str]:
        return ()

    def before_update(self, ctx: Context, new: Object, old: Object) -> Awaitable[Undo | None] | None:
        """First step of a write, before preparation and validation: take what lies outside the object
        (addresses, ports), possibly setting fields. The returned function gives it back if the write fails.
        Also called in a dry run: the context says `dry_run`, and nothing must be kept then. None: there is
        nothing to wait for."""
        return None

    def after_update(self, ctx: Context, new: Object, old: Object) -> Awaitable[None] | None:
        """The write succeeded (never called in a dry run): release what the change no longer needs."""
        return None


class Status(Update):
    """The usual `/status`: spec and most metadata stay; what is special overrides."""

    reset_fields: ClassVar[tuple[str, ...]] = ("spec",)

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        keep(new, old, "spec")


class Scale:
    """A `/scale` sub-resource: the replicas of a workload seen as an autoscaling/v1 Scale."""

    spec_replicas = "spec.replicas"
    status_replicas = "status.replicas"
    selector = "spec.selector"
    """A label selector in the object (or its text); its text form is the scale's status.selector."""
    plain_selector = False
    """The selector is a plain map of labels."""

    def values(self, obj: Object) -> tuple[int | None, int, str]:
        """The replicas that an object should have (None if it says nothing) and has, and their selector."""
        chosen = at(obj, self.selector)
        if isinstance(chosen, str):
            text = chosen
        elif self.plain_selector:
            text = ",".join(f"{key}={value}" for key, value in sorted((chosen or {}).items()))
        else:
            text = selectors.format_label_selector(chosen) if chosen is not None else ""
        return at(obj, self.spec_replicas), at(obj, self.status_replicas) or 0, text


class Create:
    """A sub-resource or a virtual resource that is only POSTed to: binding, eviction, token, reviews."""

    group = ""
    version = "v1"
    kind = ""
    """What the body is decoded as."""
    accepts: ClassVar[tuple[tuple[str, str], ...]] = ()
    """Further (group, version) pairs of the same kind that are taken as well."""
    managed = False
    """Whether the answer carries managedFields."""

    def default(self, body: Object) -> None:
        """Fill in what a client may leave out of the body."""

    async def create(self, ctx: Context, body: Object) -> Object:
        """Act on the parent `ctx.name`; the answer (201): a Status or an object."""
        raise AssertionError("every Create says what it does")


class Connect:
    """A sub-resource that is not an object: log, exec, attach, portforward, proxy."""

    methods: ClassVar[tuple[str, ...]] = ("GET", "POST")
    negotiated = False
    """Whether the client must accept one of the usual representations, though none is sent."""

    async def connect(self, ctx: Context) -> tuple[int, str, bytes]:
        """Status, content type, body; or an APIError."""
        raise AssertionError("every Connect says what it does")


class Strategy(Update):
    """A kind. Attributes are data; methods are for rules that are code."""

    create_on_update = False
    """PUT of an absent object creates it."""
    unconditional_update = True
    """PUT without a resourceVersion overwrites."""
    returns_deleted = False
    """DELETE answers with the object rather than with a Status."""
    default_propagation: Literal["Background", "Orphan", "Unsupported"] = "Background"
    """What a delete without a policy does to dependents. Unsupported: policies are ignored (events)."""
    keeps_propagation = False
    """With `mark_deleted`: the finalizers of the policy are set all the same (namespaces)."""
    generation: ClassVar[tuple[str, ...]] = ()
    """Top-level fields whose change raises metadata.generation (which then starts at 1). Empty: no generation."""
    empty_is_change: ClassVar[bool] = False
    """To send something empty in these fields is a change, though it is not stored."""
    precondition_kind = ""
    """What a failed precondition of a delete names, if not the Kind."""
    qualified_finalizers = True
    """Finalizers must belong to a domain. Not so for custom resources and a few other kinds."""
    lenient_metadata = False
    """True for kinds whose own rules come first (events, budgets, claims): beyond what these say of metadata,
    it is held to no more than every object's is."""
    ttl_flag = ""
    """Name of the configuration value (seconds) after which objects of the kind expire: `event_ttl`."""

    field_labels: ClassVar[dict[str, str]] = {}
    """Selectable fields beyond metadata.name and metadata.namespace: label → dotted path in the object."""
    stored_labels: ClassVar[dict[str, str]] = {}
    """Of these, what the stored kind calls otherwise (events.k8s.io): label → its label."""
    converted_annotations: ClassVar[tuple[str, ...]] = ()
    """Annotations that stand for fields of older versions: metadata that is shown alone goes without them."""
    deprecation: ClassVar[str] = ""
    """A warning that every answer about the kind carries, errors included."""
    indexed_fields: ClassVar[tuple[str, ...]] = ()
    """Those of them by which the reference keeps an index."""
    namespace_selectable = True
    """Whether `metadata.namespace` is a selectable field (all but a few cluster-scoped kinds)."""

    cached = True
    """False for events: the reference keeps no cache of them, and answers odd versions accordingly."""

    subresources: ClassVar[dict[str, Update | Scale | Create | Connect]] = {}
    virtual: ClassVar[Create | None] = None
    """A kind that is never stored: its POST is answered by this."""

    def virtual_objects(self) -> Iterable[Object] | None:
        """All objects of a kind that is computed rather than stored; None for the kinds that are stored."""
        return None

    def validate_name(self, name: str, prefix: bool) -> list[str]:
        """What is wrong with a name (or, with `prefix`, a generateName)."""
        return names.dns_subdomain(name, prefix)

    def name_rule(self, obj: Object) -> Callable[[str, bool], list[str]]:
        """`validate_name` for one object: a rule may depend on the rest of it."""
        return self.validate_name

    def generate_name(self, base: str) -> str:
        return names.generate(base)

    def default(self, obj: Object) -> None:
        """Fill in what a client may leave out. Runs after every decode, in the version that was sent."""

    def default_stored(self, obj: Object) -> None:
        """Fill in what an older version did not store, beyond the defaults. Only for values of other servers."""

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        """Drop what may not be set on creation (status), set what the system sets."""

    def validate_create(self, ctx: Context, obj: Object) -> Errors:
        return []

    def warnings_on_create(self, ctx: Context, obj: Object) -> Iterable[str]:
        return ()

    def complete_bookmark(self, obj: Object) -> None:
        """Add to the empty object of a bookmark what it has beyond the zeros of its schema."""

    def before_create(self, ctx: Context, obj: Object) -> Awaitable[Undo | None] | None:
        """As `before_update`, for a new object."""
        return None

    def before_delete(self, ctx: Context, name: str, propagation: str) -> None:
        """A delete of `name` (empty: of a collection) is asked for: refuse it or warn. `propagation` is the
        policy that was asked for, if any."""

    async def after_delete(self, ctx: Context, obj: Object) -> None:
        """The object is gone: release what it held."""

    def grace_period(self, ctx: Context, obj: Object, requested: int | None) -> int | None:
        """Seconds between a delete and the removal; None: this kind knows no graceful deletion."""
        return None

    def mark_deleted(self, ctx: Context, obj: Object) -> bool | None:
        """For kinds that mark their objects for deletion in a way of their own (namespaces, definitions): True if
        it was marked now, False if it was already. None: the usual way."""
        return None

    def held(self, obj: Object) -> bool:
        """Whether a marked object of such a kind must still wait."""
        return bool(obj["metadata"].get("finalizers"))

    def selectable_fields(self, obj: Object) -> dict[str, str]:
        """The values of `field_labels`; overridden where a value is more than the text at a path."""
        return {label: text_at(obj, path) for label, path in self.field_labels.items()}

    def unsupported_field_label(self, api_version: str, kind: str, label: str) -> str:
        """The message for a field selector that this kind does not know."""
        if self.field_labels:
            return f"field label not supported: {label}"
        return f'"{label}" is not a known field selector: only "metadata.name", "metadata.namespace"'

    conversion: Any = None
    """How versions of a custom resource become each other (`crd.conversion.Conversion`): its objects are handled
    in the version of the request. None for built-in kinds, which are handled in the stored one."""

    def decode(self, value: Object) -> tuple[Object, list[str]]:
        """A parsed body of a custom resource as an object, and a complaint for each unknown field."""
        raise AssertionError("built-in kinds are decoded by their schema")

    def prune(self, obj: Object) -> None:
        """Drop what the schema of a custom resource does not declare."""

    def adopt(self, merged: Object) -> Object:
        """What an apply made of a custom resource as an object."""
        raise AssertionError("built-in kinds are decoded by their schema")

    def convert(self, obj: Object, api_version: str) -> Object:
        """`obj` in another served version of the kind. Only kinds with several versions override this."""
        obj["apiVersion"] = api_version
        return obj


def at(obj: Any, path: str) -> Any:
    """The value at a dotted path of plain field names, or None."""
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
    """Put the old value of each dotted path back into `new` (removing it where the old has none)."""
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
