"""Image references, parsed as container registries do, and the default imagePullPolicy."""

from __future__ import annotations

import re

from kubist.base.caching import bounded_cache

_DOMAIN_PART = "(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_DOMAIN = rf"(?:{_DOMAIN_PART}(?:\.{_DOMAIN_PART})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_PATH_PART = "[a-z0-9]+(?:(?:[._]|__|[-]+)[a-z0-9]+)*"
_DIGEST = "[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}"
_reference = re.compile(
    rf"(?P<name>{_DOMAIN}(?:/{_PATH_PART})+)(?::(?P<tag>\w[\w.-]{{0,127}}))?(?:@(?P<digest>{_DIGEST}))?",
    re.ASCII,
).fullmatch
_identifier = re.compile("[a-f0-9]{64}").fullmatch
_HASH_LENGTHS = {"sha256": 64, "sha384": 96, "sha512": 128}


def _normalized(image: str) -> str:
    """`image` with the registry and the `library/` path that short names omit."""
    first, slash, rest = image.partition("/")
    is_domain = slash and ("." in first or ":" in first or first == "localhost" or first.lower() != first)
    domain, path = (first, rest) if is_domain else ("docker.io", image)
    if domain == "index.docker.io":
        domain = "docker.io"
    if domain == "docker.io" and "/" not in path:
        path = "library/" + path
    return f"{domain}/{path}"


def _digest_is_known(digest: str) -> bool:
    algorithm, _, encoded = digest.partition(":")
    return _HASH_LENGTHS.get(algorithm) == len(encoded) and encoded == encoded.lower()


@bounded_cache(entries=4096, key_length=256)
def pull_policy(image: str) -> str:
    """Default imagePullPolicy: Always if the tag is `latest` or absent, else IfNotPresent."""
    found = None if _identifier(image) else _reference(_normalized(image))
    if found is None or len(found["name"]) > 255:
        return "IfNotPresent"
    if found["digest"] and not _digest_is_known(found["digest"]):
        return "IfNotPresent"
    tag = found["tag"] or ("" if found["digest"] else "latest")
    return "Always" if tag == "latest" else "IfNotPresent"
