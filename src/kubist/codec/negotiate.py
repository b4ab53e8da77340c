"""Which representation a client asks for (Accept) and which it sends (Content-Type).

The reference's reading of both headers, with its two kinds of 406.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from kubist.meta.status import APIError

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
ALL = (JSON, YAML, PROTOBUF)


@dataclass(slots=True, frozen=True)
class MediaType:
    """A serializer, and possibly the kind to transform into (`as`, in version `version` of meta.k8s.io)."""

    serializer: str
    convert_to: str = ""
    version: str = ""
    stream: str = ""
    pretty: bool = False

    @property
    def content_type(self) -> str:
        return self.serializer


class NotAcceptable(APIError):
    """No representation that the client takes can be given. Not a type at all: `matched` False."""

    def __init__(self, offered: tuple[str, ...], matched: bool) -> None:
        message = "only the following media types are accepted: " + ", ".join(offered)
        super().__init__(406, "NotAcceptable", message, None if matched else {})
        if not matched:
            self.message = "the server was unable to respond with a content type that the client supports"


@functools.lru_cache(maxsize=512)
def parse_accept(header: str) -> tuple[tuple[str, tuple[tuple[str, str], ...]], ...]:
    """The clauses of an Accept header, best first: (type, parameters)."""
    clauses = []
    for position, clause in enumerate(header.split(",")):
        media, *parameters = (part.strip() for part in clause.split(";"))
        if not media:
            continue
        quality = 1.0
        kept = []
        for parameter in parameters:
            name, _, value = parameter.partition("=")
            name, value = name.strip().lower(), value.strip().strip('"')
            if name == "q":
                try:
                    quality = float(value)
                except ValueError:
                    quality = 1.0
            elif name:
                kept.append((name, value))
        clauses.append((-quality, position, media, tuple(kept)))
    clauses.sort(key=lambda clause: clause[:2])
    return tuple((media, parameters) for _, _, media, parameters in clauses)


def negotiate(
    header: str,
    *,
    offered: tuple[str, ...] = ALL,
    kinds: frozenset[tuple[str, str]] = frozenset(),
    streams: bool = False,
    pretty: bool = False,
) -> MediaType:
    """The representation to answer in. `kinds`: (kind, version) pairs of meta.k8s.io that `as` may name."""
    matched = False
    for media, parameters in parse_accept(header) if header.strip() else (("*/*", ()),):
        serializer = _serializer(media, offered)
        if serializer is None:
            continue
        matched = True
        found = _accept(serializer, parameters, kinds, streams)
        if found is not None:
            if found.pretty or pretty:
                return MediaType(found.serializer, found.convert_to, found.version, found.stream, True)
            return found
    raise NotAcceptable(offered, matched)


def _serializer(media: str, offered: tuple[str, ...]) -> str | None:
    if media in offered:
        return media
    if media == "*/*":
        return offered[0]
    main, _, sub = media.partition("/")
    if sub == "*":
        return next((offer for offer in offered if offer.startswith(main + "/")), None)
    return None


def _accept(
    serializer: str,
    parameters: tuple[tuple[str, str], ...],
    kinds: frozenset[tuple[str, str]],
    streams: bool,
) -> MediaType | None:
    group = version = kind = stream = ""
    pretty = False
    for name, value in parameters:
        if name == "as":
            kind = value
        elif name == "g":
            group = value
        elif name == "v":
            version = value
        elif name == "stream":
            stream = value
        elif name == "pretty":
            pretty = value == "1"
    if kind or group or version:
        if group != "meta.k8s.io" or (kind, version) not in kinds:
            return None
    if stream and (stream != "watch" or serializer == YAML):
        return None
    return MediaType(serializer, kind, version, stream, pretty)


def content_type(header: str, offered: tuple[str, ...] = ALL) -> str:
    """The serializer of a request's body; 415 if it is none of ours. No header means JSON."""
    media = header.partition(";")[0].strip().lower()
    if not media:
        return JSON
    if media not in offered or header.rstrip().endswith(";;"):
        message = f"the body of the request was in an unknown format - accepted media types include: {', '.join(offered)}"
        raise APIError(415, "UnsupportedMediaType", message)
    return media
