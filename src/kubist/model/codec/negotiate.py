"""Content negotiation: the representation that a client accepts (Accept) and the one it sends (Content-Type).

The reference evaluates Accept twice. First a route requires that one of its types is named literally. Then the
clauses are tried in order of preference, with their parameters. There are therefore two kinds of 406.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from kubist.base.caching import bounded_cache
from kubist.model.meta.status import APIError

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
ALL = (JSON, YAML, PROTOBUF)
STREAMED = (JSON, PROTOBUF)
STREAMS = tuple(f"{serializer};stream=watch" for serializer in STREAMED)
META_VERSIONS = ("v1", "v1beta1")
FEW = 12
LONGEST = 16 << 10
PARTIAL = ("PartialObjectMetadata", "PartialObjectMetadataList")


@dataclass(slots=True, frozen=True)
class MediaType:
    """Serializer, and optionally the kind to convert to (`as`, in version `version` of meta.k8s.io)."""

    serializer: str
    convert_to: str = ""
    version: str = ""
    pretty: bool = False


@dataclass(slots=True, frozen=True, eq=False)
class Endpoint:
    """Representations that one kind of endpoint offers."""

    plain: tuple[str, ...] = ALL
    """Serializers of the object itself."""
    transforms: bool = False
    """Whether PartialObjectMetadata is offered."""
    table: bool = False
    literal: bool = False
    """Whether the Accept header must name a type in full (or `*/*`) before its clauses are evaluated."""
    watched: bool = False
    """Whether the path also serves watches. The 406 message then lists the stream types, too."""


ERRORS = Endpoint()
"""Error responses, which are never converted to a Table or PartialObjectMetadata."""


@dataclass(slots=True, frozen=True)
class Clause:
    """One type of an Accept header, with its parameters."""

    type: str
    subtype: str
    quality: float = 1.0
    parameters: tuple[tuple[str, str], ...] = ()

    def better_than(self, other: Clause) -> bool:
        return (
            self.quality > other.quality
            or (self.type != "*" and other.type == "*")
            or (self.subtype != "*" and other.subtype == "*")
        )

    def names(self, serializer: str) -> bool:
        type, _, subtype = serializer.partition("/")
        return (self.type == type and self.subtype in (subtype, "*")) or (
            self.type == "*" and self.subtype == "*"
        )


class NotAcceptable(APIError):
    """The endpoint offers no representation that the client accepts."""

    def __init__(self, offered: tuple[str, ...]) -> None:
        super().__init__(
            406, "NotAcceptable", "only the following media types are accepted: " + ", ".join(offered)
        )


class NoRoute(APIError):
    """The Accept header names no type of the route. The reference has a different message here, with empty details."""

    def __init__(self, offered: tuple[str, ...]) -> None:
        message = "406: Not Acceptable\n\nAvailable representations: " + ", ".join(offered)
        super().__init__(406, "NotAcceptable", message, {})


def parse_accept(header: str) -> tuple[Clause, ...]:
    """Clauses of an Accept header, best first. Only the first LONGEST characters are read.

    Up to FEW clauses are sorted by insertion, because the reference's order is not total and clients can see
    its result.
    """
    clauses = [clause for part in header[:LONGEST].split(",") if (clause := _clause(part)) is not None]
    if len(clauses) > FEW:
        clauses.sort(key=lambda clause: (-clause.quality, clause.type == "*", clause.subtype == "*"))
        return tuple(clauses)
    for last in range(1, len(clauses)):
        at = last
        while at and clauses[at].better_than(clauses[at - 1]):
            clauses[at - 1], clauses[at] = clauses[at], clauses[at - 1]
            at -= 1
    return tuple(clauses)


def _clause(part: str) -> Clause | None:
    media, *rest = part.strip(" ").split(";")
    type, *subtypes = (word.strip(" ") for word in media.split("/"))
    if not subtypes and type == "*":
        subtypes = ["*"]
    if len(subtypes) != 1 or not subtypes[0]:
        return None
    quality, parameters = 1.0, []
    for parameter in rest:
        name, _, value = parameter.partition("=")
        name = name.strip(" ")
        if not value or "=" in value:
            continue
        if name == "q":
            quality = _quality(value)
        else:
            parameters.append((name, value.strip(" ")))
    return Clause(type, subtypes[0], quality, tuple(parameters))


def _quality(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def choose(header: str, endpoint: Endpoint) -> MediaType | None:
    """Best representation that both client and endpoint support. None if there is none."""
    if not header:
        return MediaType(endpoint.plain[0])
    for clause in parse_accept(header):
        for serializer in ALL:
            if clause.names(serializer):
                media_type = _accepted(serializer, dict(clause.parameters), endpoint)
                if media_type is not None:
                    return media_type
    return None


def _accepted(serializer: str, parameters: dict[str, str], endpoint: Endpoint) -> MediaType | None:
    stream = parameters.get("stream")
    if stream and (stream != "watch" or serializer not in STREAMED):
        return None
    if parameters.get("sv") and not (endpoint.transforms and parameters["sv"] == META_VERSIONS[0]):
        return None
    kind, group, version = (parameters.get(name) for name in ("as", "g", "v"))
    pretty = parameters.get("pretty") == "1"
    if kind is None and group is None and version is None:
        return MediaType(serializer, pretty=pretty) if serializer in endpoint.plain else None
    if group != "meta.k8s.io" or version not in META_VERSIONS or kind is None:
        return None
    if kind == "Table":
        allowed = endpoint.table and serializer != PROTOBUF
    else:
        allowed = endpoint.transforms and kind in PARTIAL
    return MediaType(serializer, kind, version, pretty) if allowed else None


def check_route(header: str, offered: tuple[str, ...]) -> None:
    """Raises `NoRoute` unless the header names a type that the route produces."""
    for part in header[:LONGEST].split(","):
        media = part.partition(";")[0].strip(" ")
        if media == "*/*" or media in offered:
            return
    raise NoRoute(offered)


def negotiate(header: str, endpoint: Endpoint, *, pretty: bool = False) -> MediaType:
    """Representation of the response. 406 if there is none."""
    return _negotiate(header, endpoint, pretty)


@bounded_cache(entries=1024, key_length=512)
def _negotiate(header: str, endpoint: Endpoint, pretty: bool) -> MediaType:
    if endpoint.literal and header:
        check_route(header, ALL + STREAMS if endpoint.watched else ALL)
    media_type = choose(header, endpoint)
    if media_type is None:
        raise NotAcceptable(ALL)
    return replace(media_type, pretty=True) if pretty and not media_type.pretty else media_type


def negotiate_stream(header: str, endpoint: Endpoint) -> MediaType:
    """Representation of a watch. YAML is not available."""
    media_type = negotiate(header, endpoint)
    if media_type.serializer not in STREAMED:
        raise NotAcceptable(STREAMS)
    return replace(media_type, pretty=False) if media_type.pretty else media_type


_TRUE = frozenset(("1", "t", "T", "TRUE", "true", "True"))


def wants_pretty(query: dict[str, str], user_agent: str) -> bool:
    """Whether to indent the response: the query asks for it, or the user agent is curl, wget or a browser."""
    pretty = query.get("pretty")
    return pretty in _TRUE if pretty else user_agent.startswith(("curl", "Wget", "Mozilla/5.0"))


_TOKEN = r"[!#$%&'*+\-.0-9A-Z^_`a-z{|}~]+"
_PARAMETER = re.compile(rf'\s*;\s*({_TOKEN})\s*=\s*({_TOKEN}|"(?:[^"\\\r\n]|\\.)*")')
_END = re.compile(r"\s*+;?\s*+")


def content_type(header: str, offered: tuple[str, ...] = ALL) -> str:
    """Serializer of a request body. 415 if it is unknown. Without a header it is JSON."""
    if header in offered:
        return header
    if not header:
        return JSON
    media, _, parameters = header.partition(";")
    media = media.strip().lower()
    if media not in offered or (parameters and not _well_formed(header[header.index(";") :])):
        why = "the body of the request was in an unknown format - accepted media types include: "
        raise APIError(415, "UnsupportedMediaType", why + ", ".join(offered))
    return media


def _well_formed(parameters: str) -> bool:
    """Whether all parameters are well-formed and none has two values. Their meaning is ignored."""
    seen: dict[str, str] = {}
    at = 0
    while match := _PARAMETER.match(parameters, at):
        name, value = match[1].lower(), match[2]
        if seen.setdefault(name, value) != value:
            return False
        at = match.end()
    return _END.fullmatch(parameters, at) is not None
