"""Specification of a cluster: the body of POST /kubist/v1/clusters, and the part of it that is kept on disk."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal, NamedTuple

from kubist.base.jsontext.errors import DecodeError
from kubist.model.codec import yaml
from kubist.model.meta import names
from kubist.model.meta.object import Object
from kubist.storage.cache.cache import CacheImage
from kubist.storage.memory import StoreImage
from kubist.testbench.control_api.body import Body, read
from kubist.testbench.control_api.control_api import Call
from kubist.testbench.control_api.field_types import (
    TEXTS,
    Count,
    Fields,
    FieldType,
    Invalid,
    Time,
    seconds,
    text,
    texts_of,
)
from kubist.testbench.users.users import Kubeconfig

KIND = "Cluster"
Storage = Literal["memory", "disk"]
MEMORY: Literal["memory"] = "memory"
DISK: Literal["disk"] = "disk"
ALL_LOOPS = ("*",)
SOURCES = ("fork", "snapshot", "backup")
LONGEST = 10 * 365 * 86400.0
"""Longest time to live, in seconds."""
MANIFESTS = 10_000
"""Maximum number of manifests in one request."""
_SEPARATOR = re.compile(r"^---(?:[ \t].*)?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of the cluster. 0 or missing: no limit."""

    objects: Count = 0
    bytes: Count = 0
    requests_per_second: Count = 0

    def to_json(self) -> Object:
        pairs = (
            ("objects", self.objects),
            ("bytes", self.bytes),
            ("requestsPerSecond", self.requests_per_second),
        )
        return {name: value for name, value in pairs if value}


NO_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Record:
    """Facts about a cluster that survive a restart of the host."""

    name: str
    uid: str
    created: float
    storage: str
    expires: float | None = None
    """Time at which the cluster is deleted, in seconds since 1970."""
    controllers: tuple[str, ...] = ALL_LOOPS
    workloads: bool = False
    limits: Limits = NO_LIMITS
    issuers: tuple[str, ...] = ()
    """Issuers of its service-account tokens, the newest first."""

    def to_json(self) -> Object:
        return asdict(self)

    @classmethod
    def from_json(cls, record: Object) -> Record:
        """Raises TypeError, KeyError or ValueError for a file that is not of this version."""
        lists = {name: tuple(record[name]) for name in ("controllers", "issuers")}
        return cls(**{**record, **lists, "limits": Limits(**record["limits"])})


NAME = text(lambda name: names.dns_label(name) if name else (), maxLength=63)


def _read_loops(value: Any) -> tuple[str, ...]:
    loops = texts_of(value)
    # Saves start-up time: the control loops are loaded with the first cluster that has some.
    from kubist.cluster.control.manager import chosen

    chosen(loops)
    return loops


class Manifests(FieldType):
    """Objects in a list, or in YAML text. Lists are expanded to their items."""

    def read(self, fields: Fields, name: str, default: Any) -> Any:
        manifests = super().read(fields, name, [])
        objects = list(_expanded(fields, name, manifests))
        if len(objects) > MANIFESTS:
            fields.reject(name, len(objects), f"must have at most {MANIFESTS} objects")
        return tuple(objects)


def _parse_manifests(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    if not isinstance(value, str):
        raise Invalid("must be YAML text or a list of objects", value=type(value).__name__)
    try:
        documents = [yaml.parse(text.encode()).value for text in _SEPARATOR.split(value) if text.strip()]
    except (DecodeError, ValueError) as error:
        excerpt = f"{value[:100]}…" if len(value) > 100 else value
        raise Invalid(f"is not YAML: {error}", value=excerpt) from None
    return [document for document in documents if document is not None]


def _expanded(fields: Fields, name: str, manifests: list[Any]) -> Iterator[Object]:
    """Objects of a list, with the items of lists in it."""
    for index, manifest in enumerate(manifests):
        if not isinstance(manifest, dict):
            fields.reject(f"{name}[{index}]", str(manifest)[:100], "must be an object")
        elif str(manifest.get("kind", "")).endswith("List") and isinstance(manifest.get("items"), list):
            for number, item in enumerate(manifest["items"]):
                if isinstance(item, dict):
                    yield item
                else:
                    fields.reject(f"{name}[{index}].items[{number}]", str(item)[:100], "must be an object")
        else:
            yield manifest


LOOPS = FieldType(TEXTS.schema, convert=_read_loops)
LOOPS_HELP = "Control loops: `*` for all, `name` for one, `-name` to exclude one. Empty: none."
MANIFEST_LIST = Manifests(
    {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "object"}}]}, convert=_parse_manifests
)
LIFE = seconds(LONGEST, "must be longer than 0 and at most 10 years")


@dataclass(frozen=True, slots=True)
class Spec:
    """At most one of fork, snapshot and backup; a snapshot of another cluster needs both fork and snapshot. Without
    them the cluster is empty."""

    name: Annotated[str, NAME, "A DNS label. Missing: a generated name."] = ""
    storage: Storage = MEMORY
    fork: Annotated[str, "Name of the cluster whose content is copied."] = ""
    snapshot: Annotated[str, "Name of a snapshot of the host, or of the forked cluster."] = ""
    backup: Annotated[str, "Path of a file of `kubist backup` on the host."] = ""
    manifests: Annotated[
        tuple[Object, ...], MANIFEST_LIST, "Objects to apply: YAML text, or a list of objects."
    ] = ()
    time_to_live: Annotated[float | None, LIFE] = None
    controllers: Annotated[tuple[str, ...] | None, LOOPS, LOOPS_HELP] = None
    """None: as in the forked cluster, or all."""
    workloads: Annotated[bool | None, "Whether nodes and pods are simulated."] = None
    limits: Limits = NO_LIMITS

    @property
    def controllers_or_all(self) -> tuple[str, ...]:
        return ALL_LOOPS if self.controllers is None else self.controllers


class ClusterState(Body):
    name: str
    uid: str
    path: Annotated[str, "Path of the cluster's API: /clusters/NAME."]
    state: Literal["Running", "Unloaded"]
    storage: Storage
    created: Time
    expires: Time | None
    controllers: Annotated[tuple[str, ...] | None, LOOPS, LOOPS_HELP]
    workloads: bool | None
    limits: Limits | None


class NewCluster(ClusterState):
    kubeconfig: Kubeconfig


SCHEMAS = {"ClusterSpec": Spec, "Cluster": ClusterState, "NewCluster": NewCluster}


class Source(NamedTuple):
    """State that a cluster starts from."""

    store: StoreImage
    cache: CacheImage | None = None
    """State of the cache in front of the store. None: the store is read, and bootstrap objects are checked."""
    is_template: bool = False
    clock: tuple[float, float] | None = None
    """Time and speed of the forked cluster's clock, if it was moved."""


def read_spec(call: Call, has_disk: bool) -> Spec:
    """Specification in the body of a request. Raises 400 or 422. `has_disk`: whether the host has a data directory."""

    def check_storage(storage: str) -> str:
        if storage == DISK and not has_disk:
            raise ValueError("the host has no data directory: start it without --in-memory")
        return storage

    fields = call.fields(KIND)
    spec = read(fields, Spec, storage=check_storage)
    sources = [name for name in SOURCES if getattr(spec, name)]
    if spec.snapshot and spec.fork:
        sources.remove("fork")  # a snapshot of that cluster
    for name in sources[1:]:
        fields.forbid(name, f"may not be set together with {sources[0]}")
    fields.done()
    return spec
