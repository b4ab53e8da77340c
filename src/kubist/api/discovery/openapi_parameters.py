"""Parameters of OpenAPI operations: their types, and the names under which v2 documents share them."""

from __future__ import annotations

from typing import Any

from kubist.api.discovery.parameter_descriptions import DESCRIPTIONS

LIST = (
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "shardSelector",
    "timeoutSeconds",
    "watch",
)
WATCH = ("allowWatchBookmarks", "watch")
"""Parameters of LIST that only a watch uses."""
WRITE = ("dryRun", "fieldManager", "fieldValidation")
PATCH = ("dryRun", "fieldManager:patch", "fieldValidation", "force")
DELETE = (
    "dryRun",
    "gracePeriodSeconds",
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "orphanDependents",
    "propagationPolicy",
)
_ATTACH = ("container:attach", "stderr:attach", "stdin:attach", "stdout:attach", "tty:attach")
_EXEC = ("command", "container:exec", "stderr:exec", "stdin:exec", "stdout:exec", "tty:exec")
_LOG = (
    "container:log",
    "follow",
    "insecureSkipTLSVerifyBackend",
    "limitBytes",
    "previous",
    "sinceSeconds",
    "stream",
    "tailLines",
    "timestamps",
)
CONNECT: dict[tuple[str, str], tuple[str, ...]] = {
    ("attach", "PodAttachOptions"): _ATTACH,
    ("exec", "PodExecOptions"): _EXEC,
    ("portforward", "PodPortForwardOptions"): ("ports",),
    ("proxy", "PodProxyOptions"): ("path:pod",),
    ("proxy", "ServiceProxyOptions"): ("path:service",),
    ("proxy", "NodeProxyOptions"): ("path:node",),
    ("log", "Pod"): _LOG,
}
"""Parameters of subresources that are not objects, by name and kind."""

_BOOLEANS = frozenset(
    [
        "allowWatchBookmarks",
        "follow",
        "force",
        "ignoreStoreReadErrorWithClusterBreakingPotential",
        "orphanDependents",
        "insecureSkipTLSVerifyBackend",
        "previous",
        "sendInitialEvents",
        "stderr",
        "stdin",
        "stdout",
        "timestamps",
        "tty",
        "watch",
    ]
)
_INTEGERS = frozenset(
    ["gracePeriodSeconds", "limit", "limitBytes", "ports", "sinceSeconds", "tailLines", "timeoutSeconds"]
)
_IN_PATH = ("name", "namespace", "path")

SHARED = {
    "allowWatchBookmarks": "HC2hJt-J",
    "command": "Py3eQybp",
    "container:attach": "_Q-EJ3nR",
    "container:exec": "i5dOmRiM",
    "container:log": "1GeXxFDC",
    "continue": "QfD61s0i",
    "fieldManager": "Qy4HdaTW",
    "fieldManager:patch": "7c6nTn1T",
    "fieldSelector": "xIcQKXFG",
    "follow": "9OIXh_2R",
    "force": "tOGGb0Yi",
    "gracePeriodSeconds": "-K5HaBOS",
    "ignoreStoreReadErrorWithClusterBreakingPotential": "QbNkfIqj",
    "insecureSkipTLSVerifyBackend": "gM00jVbe",
    "labelSelector": "5Zw57w4C",
    "limit": "1NfNmdNH",
    "limitBytes": "zwd1RXuc",
    "namespace": "vgWSWtn3",
    "orphanDependents": "uRB25kX5",
    "path": "z6Ciiujn",
    "path:node": "rFDtV0x9",
    "path:pod": "oPbzgLUj",
    "path:service": "QCf0eosM",
    "ports": "91KROJmm",
    "pretty": "tJGM1-ng",
    "previous": "1jxDPu3y",
    "propagationPolicy": "6jk3prlO",
    "resourceVersion": "5WAnf1kx",
    "resourceVersionMatch": "t8XhRHeC",
    "sendInitialEvents": "rLXlEK_k",
    "shardSelector": "Kgyki_3_",
    "sinceSeconds": "vE2NLdnP",
    "stderr:attach": "26jJhFUR",
    "stderr:exec": "W_1TNlWc",
    "stdin:attach": "sEFnN3IS",
    "stdin:exec": "PSzNhyUC",
    "stdout:attach": "005YMKE6",
    "stdout:exec": "-EZLRwV1",
    "stream": "l-48cgXv",
    "tailLines": "9xQLWHMV",
    "timeoutSeconds": "yvYezaOC",
    "timestamps": "c17fW1w_",
    "tty:attach": "g7MlET_l",
    "tty:exec": "s0flW37O",
    "watch": "XNNPZGbK",
}
"""Parameters that v2 documents hold once, with the suffix of their shared name. A word after a colon
distinguishes parameters of the same name with different meanings."""


def name_of(parameter: str) -> str:
    return parameter.partition(":")[0]


def type_of(parameter: str) -> str:
    name = name_of(parameter)
    return "boolean" if name in _BOOLEANS else "integer" if name in _INTEGERS else "string"


def place(parameter: str) -> dict[str, Any]:
    """Name, description and location of a parameter."""
    shown: dict[str, Any] = {"description": DESCRIPTIONS[parameter], "name": name_of(parameter)}
    if parameter in _IN_PATH:
        return {**shown, "in": "path", "required": True}
    return {**shown, "in": "query"}
