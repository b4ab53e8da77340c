"""Default outcomes, for pods that controllers make: outcome annotations of the owners and of the namespace of a pod.

`;` separates alternatives. A clause `image PATTERN` restricts an alternative to images; `*` stands for any text. The
first alternative that matches a container applies:

    succeed after 2s, image alpine:*; fail 3, image */curl*; run
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from kubist.api.object_client import ObjectClient
from kubist.api.resources.resource import Resource
from kubist.base.caching import bounded_cache
from kubist.cluster.control.loop import controller_of
from kubist.cluster.control.owners import OWNERS
from kubist.cluster.simulation.outcomes import ANNOTATION, LONGEST_SHOWN
from kubist.model.meta.object import Object

MOST_OWNERS = 8
"""Maximum number of levels of owners that are followed."""
LONGEST = 1024
"""Maximum length of a default in characters."""
_ANNOTATION = ANNOTATION.encode()

Annotations = Mapping[str, str]


def annotations_above(client: ObjectClient, pod: Object) -> Iterator[Annotations]:
    """Annotations of a pod's controller, of that object's controller, and so on, then those of the namespace. Objects
    without a default are left out."""
    namespace, owned = pod["metadata"]["namespace"], pod
    for _ in range(MOST_OWNERS):
        reference = controller_of(owned)
        if reference is None:
            break
        group, _, version = reference.get("apiVersion", "").rpartition("/")
        kind = client.find_kind(group, version, reference.get("kind", ""))
        owner = _object(client, kind, namespace, reference["name"]) if kind is not None else None
        if owner is None or owner["metadata"]["uid"] != reference.get("uid"):
            break
        owned = owner
        yield owned["metadata"].get("annotations") or {}
    namespace_object = _object(client, client.resource("namespaces"), "", namespace)
    yield (namespace_object or {"metadata": {}})["metadata"].get("annotations") or {}


def _object(client: ObjectClient, kind: Resource, namespace: str, name: str) -> Object | None:
    """Object with an owner or a default. It must not be changed."""
    stored = client.resource(kind.resource, kind.group)
    entry = client.registry.collection(stored).get(stored.key(namespace if stored.namespaced else "", name))
    if entry is None or not (_ANNOTATION in entry.tail or OWNERS in entry.tail):
        return None
    return client.parsed(entry)


def defaults_for(pod: Object, above: Iterable[Annotations]) -> dict[str, str]:
    """Outcome annotations that a pod gets. Its own win over those of its owners, and those of its owners over those of
    its namespace."""
    levels = [level for level in above if any(key.startswith(ANNOTATION) for key in level)]
    if not levels:
        return {}
    own = pod["metadata"].get("annotations") or {}
    of_all = [] if ANNOTATION in own else [ANNOTATION]
    regular = _defaults(pod["spec"]["containers"], levels, own, of_all) if of_all else {}
    if len(set(regular.values())) == 1:
        # An annotation for all containers can also evict the pod.
        regular = {ANNOTATION: next(iter(regular.values()))}
    defaults = _defaults(pod["spec"].get("initContainers") or [], levels, own, []) | regular
    return {key: text for key, text in defaults.items() if text}


def _defaults(
    containers: list[Object], levels: list[Annotations], own: Annotations, of_all: list[str]
) -> dict[str, str]:
    """Outcomes of containers without an annotation of their own. Empty for those without a default."""
    keys = {f"{ANNOTATION}.{container['name']}": container.get("image", "") for container in containers}
    return {key: _default(image, levels, [key, *of_all]) for key, image in keys.items() if key not in own}


def _default(image: str, levels: list[Annotations], keys: list[str]) -> str:
    """Outcome of the nearest level that has one for an image."""
    for text in (level[key] for level in levels for key in keys if key in level):
        for patterns, outcome in _alternatives(text):
            if all(_suits(pattern, image) for pattern in patterns):
                return outcome
    return ""


@bounded_cache(entries=256, key_length=LONGEST)
def _alternatives(text: str) -> list[tuple[list[str], str]]:
    """Patterns of images, and the outcome behind them. A malformed outcome becomes an Event about the pod."""
    if len(text) > LONGEST:
        return [([], f"{text[:LONGEST_SHOWN]}…")]
    alternatives = []
    for alternative in text.split(";"):
        clauses = [clause.split() for clause in alternative.split(",")]
        patterns = [words[1] for words in clauses if _is_pattern(words)]
        outcome = ", ".join(" ".join(words) for words in clauses if not _is_pattern(words))
        alternatives.append((patterns, outcome))
    return alternatives


def _is_pattern(words: list[str]) -> bool:
    return len(words) == 2 and words[0].lower() == "image"


def _suits(pattern: str, image: str) -> bool:
    """Whether an image, or its name without tag and digest, has a form in which `*` stands for any text."""
    name = image.partition("@")[0]
    directory, slash, last = name.rpartition("/")
    return _has_form(pattern, image) or _has_form(pattern, directory + slash + last.partition(":")[0])


def _has_form(pattern: str, text: str) -> bool:
    first, *others = pattern.split("*")
    if not others:
        return text == pattern
    if not text.startswith(first) or not text.endswith(others[-1]):
        return False
    place = len(first)
    for part in others[:-1]:
        place = text.find(part, place)
        if place < 0:
            return False
        place += len(part)
    return place <= len(text) - len(others[-1])
