"""Terms of pod affinity and of topology spread: sets of pods by namespace and labels."""

from __future__ import annotations

from collections.abc import Callable

import orjson

from kubist.base.caching import bounded_cache
from kubist.model.meta.object import Object
from kubist.model.meta.selectors import LabelSelector, Requirement, label_selector

TEXT_LENGTH, KEY_LENGTH = 1024, 2048
"""Maximum length of the text of a term, and of the text together with a namespace, that is kept in caches."""
NamespaceLabels = Callable[[str], dict[str, str]]
"""Labels of a namespace."""


class Term:
    """Set of pods, and the node label that defines a topology domain. Equal terms are the same object."""

    __slots__ = ("is_long", "namespace_selector", "namespaces", "selector", "topology_key")

    def __init__(
        self,
        namespaces: frozenset[str],
        namespace_selector: LabelSelector | None,
        selector: LabelSelector | None,
        topology_key: str,
        *,
        is_long: bool,
    ) -> None:
        """`is_long`: the text of the term is so long that nothing about it is kept."""
        self.is_long = is_long
        self.namespaces = namespaces
        self.namespace_selector = namespace_selector
        self.selector = selector
        self.topology_key = topology_key

    def matches(self, namespace: str, labels: dict[str, str], labels_of: NamespaceLabels) -> bool:
        if namespace not in self.namespaces:
            selector = self.namespace_selector
            if selector is None or not selector.matches(labels_of(namespace)):
                return False
        return self.selector is not None and self.selector.matches(labels)


def affinity_term(term: Object, namespace: str) -> Term:
    """Term of the pod affinity of a pod in a namespace."""
    return _affinity_term(orjson.dumps(term, option=orjson.OPT_SORT_KEYS).decode(), namespace)


@bounded_cache(entries=4096, key_length=KEY_LENGTH)
def _affinity_term(text: str, namespace: str) -> Term:
    term = orjson.loads(text)
    chosen = term.get("namespaceSelector")
    listed = frozenset(term.get("namespaces") or ())
    if not listed and chosen is None:
        listed = frozenset((namespace,))
    selector = term.get("labelSelector")
    return Term(
        listed,
        label_selector(chosen) if chosen is not None else None,
        label_selector(selector) if selector is not None else None,
        term.get("topologyKey", ""),
        is_long=len(text) > TEXT_LENGTH,
    )


def spread_term(constraint: Object, namespace: str, labels: dict[str, str]) -> Term:
    """Pods that a topology spread constraint of a pod counts: those of its namespace that match the selector."""
    kept = {key: labels[key] for key in constraint.get("matchLabelKeys") or () if key in labels}
    shown = {"topologyKey": constraint["topologyKey"], "labelSelector": constraint.get("labelSelector")}
    text = orjson.dumps([shown, kept], option=orjson.OPT_SORT_KEYS).decode()
    return _spread_term(text, namespace)


@bounded_cache(entries=4096, key_length=KEY_LENGTH)
def _spread_term(text: str, namespace: str) -> Term:
    shown, kept = orjson.loads(text)
    given = shown["labelSelector"]
    selector = label_selector(given) if given is not None else None
    if selector is not None and kept:
        more = [Requirement(key, "=", (value,)) for key, value in kept.items()]
        selector = LabelSelector([*selector.requirements, *more])
    long = len(text) > TEXT_LENGTH
    return Term(frozenset((namespace,)), None, selector, shown["topologyKey"], is_long=long)
