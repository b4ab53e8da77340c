"""Images that cannot be pulled. No registry is asked: the name or tag of the image says that it does not exist, or the
name is malformed."""

from __future__ import annotations

import re

from kubist.base.caching import bounded_cache

_is_missing = re.compile(
    "([a-z0-9._-]*[._-])?(non-?existent|does-?not-?exist|no-?such-?(image|tag|version))([._-].*)?"
).fullmatch

_component = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_label = "[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_is_host = re.compile(rf"(?:{_label}(?:\.{_label})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?", re.ASCII).fullmatch
_is_component = re.compile(_component).fullmatch
_is_tag = re.compile(r"\w[\w.-]{0,127}", re.ASCII).fullmatch
_is_digest = re.compile(
    r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}", re.ASCII
).fullmatch
_is_identifier = re.compile("[a-f0-9]{64}").fullmatch
LONGEST_PATH = 255
BAD_FORMAT = "invalid reference format"


@bounded_cache(entries=1024, key_length=512)
def is_missing(image: str) -> bool:
    """Whether the last part of an image's name, or its tag, is a word such as `non-existent`, or its tag is `404`."""
    name, _, tag = image.partition("@")[0].rpartition("/")[2].partition(":")
    return tag == "404" or any(_is_missing(part.lower()) for part in (name, tag))


@bounded_cache(entries=1024, key_length=512)
def name_problem(image: str) -> str:
    """Reason for which a kubelet cannot parse the name of an image. Empty if the name is well-formed."""
    if _is_identifier(image):
        return f"invalid repository name ({image}), cannot specify 64-byte hexadecimal strings"
    host, path = _split_host(image)
    repository = path.partition(":")[0]
    if repository != repository.lower():
        return f"{BAD_FORMAT}: repository name ({repository}) must be lowercase"
    rest, at, digest = path.partition("@")
    repository, colon, tag = rest.partition(":")
    if (
        not _is_host(host)
        or not all(_is_component(part) for part in repository.split("/"))
        or (colon and not _is_tag(tag))
        or (at and not _is_digest(digest))
    ):
        return BAD_FORMAT
    if len(repository) > LONGEST_PATH:
        return f"repository name must not be more than {LONGEST_PATH} characters"
    return ""


def _split_host(image: str) -> tuple[str, str]:
    """Registry and the rest of an image's name. Names without a registry are those of Docker Hub."""
    first, slash, rest = image.partition("/")
    if slash and (first == "localhost" or "." in first or ":" in first or first != first.lower()):
        return first, rest
    return "docker.io", image if slash else f"library/{image}"
