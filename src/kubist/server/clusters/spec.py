"""Specification of a cluster: the body of POST /kubist/v1/clusters, and the part of it that is kept on disk."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from kubist.base.jsontext.errors import DecodeError
from kubist.model.codec import yaml
from kubist.model.meta import names
from kubist.model.meta.object import Object
from kubist.storage.cache.cache import CacheImage
from kubist.storage.memory import StoreImage
from kubist.testbench.control_api.call import Call, Fields

KIND = "Cluster"
MEMORY, DISK = "memory", "disk"
ALL_LOOPS = ("*",)
SOURCES = ("fork", "snapshot", "backup")
LONGEST = 10 * 365 * 86400.0
"""Longest time to live, in seconds."""
MANIFESTS = 10_000
"""Maximum number of manifests in one request."""
_SEPARATOR = re.compile(r"^---(?:[ \t].*)?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a cluster. 0: no limit."""

    objects: int = 0
    bytes: int = 0
    """Bytes of all objects as they are stored."""
    requests_per_second: int = 0

    def shown(self) -> Object:
        pairs = (
            ("objects", self.objects),
            ("bytes", self.bytes),
            ("requestsPerSecond", self.requests_per_second),
        )
        return {name: value for name, value in pairs if value}


@dataclass(frozen=True, slots=True)
class Record:
    """Everything about a cluster that outlives a restart of the host."""

    name: str
    uid: str
    created: float
    storage: str
    expires: float | None = None
    """Time at which the cluster is deleted, in seconds since 1970."""
    controllers: tuple[str, ...] = ALL_LOOPS
    workloads: bool = False
    limits: Limits = field(default_factory=Limits)
    issuers: tuple[str, ...] = ()
    """Issuers of its service-account tokens, the newest first."""

    def to_json(self) -> Object:
        return asdict(self)

    @classmethod
    def from_json(cls, found: Object) -> Record:
        """Raises TypeError, KeyError or ValueError for a file that is not of this version."""
        lists = {name: tuple(found[name]) for name in ("controllers", "issuers")}
        return cls(**{**found, **lists, "limits": Limits(**found["limits"])})


@dataclass(frozen=True, slots=True)
class Spec:
    """A cluster as it is asked for. None in `controllers` and `workloads`: as in the forked cluster, or the default."""

    name: str = ""
    storage: str = MEMORY
    fork: str = ""
    snapshot: str = ""
    backup: str = ""
    manifests: tuple[Object, ...] = ()
    time_to_live: float | None = None
    controllers: tuple[str, ...] | None = None
    workloads: bool | None = None
    limits: Limits = field(default_factory=Limits)

    @property
    def controllers_or_all(self) -> tuple[str, ...]:
        return ALL_LOOPS if self.controllers is None else self.controllers


class Source(NamedTuple):
    """State that a cluster starts from."""

    store: StoreImage
    cache: CacheImage | None = None
    """State of the cache in front of the store. None: the store is read, and bootstrap objects are checked."""
    is_template: bool = False
    clock: tuple[float, float] | None = None
    """Time and speed of the forked cluster's clock, if it was moved."""


def read(call: Call, disk: bool) -> Spec:
    """Specification in the body of a request. Raises 400 or 422. `disk`: whether the host has a data directory."""
    asked = call.fields(KIND)
    limited = asked.below("limits")
    spec = Spec(
        name=_name(asked),
        storage=_storage(asked, disk),
        fork=asked.text("fork"),
        snapshot=asked.text("snapshot"),
        backup=asked.text("backup"),
        manifests=_manifests(asked),
        time_to_live=_time_to_live(asked),
        controllers=_controllers(asked),
        workloads=asked.boolean("workloads"),
        limits=Limits(*(limited.integer(name) for name in ("objects", "bytes", "requestsPerSecond"))),
    )
    given = [name for name in SOURCES if getattr(spec, name)]
    if spec.snapshot and spec.fork:
        given.remove("fork")  # a snapshot of that cluster
    for name in given[1:]:
        asked.forbid(name, f"may not be set together with {given[0]}")
    asked.done(limited)
    return spec


def _name(asked: Fields) -> str:
    name = asked.text("name")
    for problem in names.dns_label(name) if name else ():
        asked.reject("name", name, problem)
    return name


def _storage(asked: Fields, disk: bool) -> str:
    storage = asked.text("storage", MEMORY)
    if storage not in (MEMORY, DISK):
        asked.reject("storage", storage, f"must be {MEMORY} or {DISK}")
    elif storage == DISK and not disk:
        asked.reject("storage", storage, "the host has no data directory: start it without --in-memory")
    return storage


def _time_to_live(asked: Fields) -> float | None:
    shown = asked.peek("timeToLive")
    seconds = asked.seconds("timeToLive")
    if seconds is not None and not 0 < seconds <= LONGEST:
        asked.reject("timeToLive", shown, "must be longer than 0 and at most 10 years")
    return seconds


def _controllers(asked: Fields) -> tuple[str, ...] | None:
    given = asked.peek("controllers")
    found = asked.texts("controllers")
    if given is None:
        return None
    # Saves start-up time: the control loops are loaded with the first cluster that has some.
    from kubist.cluster.control.manager import chosen

    try:
        chosen(found)
    except ValueError as error:
        asked.reject("controllers", given, str(error))
    return found


def _manifests(asked: Fields) -> tuple[Object, ...]:
    """Objects of the field `manifests`: a list of objects, or YAML text. Lists are expanded to their items."""
    given = asked.take("manifests")
    if given is None:
        return ()
    found: list[Any]
    if isinstance(given, str):
        try:
            found = [yaml.parse(text.encode()).value for text in _SEPARATOR.split(given) if text.strip()]
        except (DecodeError, ValueError) as error:
            asked.reject(
                "manifests", f"{given[:100]}…" if len(given) > 100 else given, f"is not YAML: {error}"
            )
            return ()
        found = [document for document in found if document is not None]
    elif isinstance(given, list):
        found = given
    else:
        asked.reject("manifests", type(given).__name__, "must be YAML text or a list of objects")
        return ()
    objects: list[Object] = []
    for index, manifest in enumerate(found):
        if not isinstance(manifest, dict):
            asked.reject(f"manifests[{index}]", str(manifest)[:100], "must be an object")
        elif str(manifest.get("kind", "")).endswith("List") and isinstance(manifest.get("items"), list):
            for number, item in enumerate(manifest["items"]):
                if isinstance(item, dict):
                    objects.append(item)
                else:
                    asked.reject(f"manifests[{index}].items[{number}]", str(item)[:100], "must be an object")
        else:
            objects.append(manifest)
    if len(objects) > MANIFESTS:
        asked.reject("manifests", len(objects), f"must have at most {MANIFESTS} objects")
    return tuple(objects)
