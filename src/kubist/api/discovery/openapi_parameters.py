"""Parameters of OpenAPI operations: their types, their descriptions, and their shared names in v2 documents."""

from __future__ import annotations

from typing import Any

_CONTAINER = "Name of the container. It may be left out if the pod has one container."
_PROXY = "Path below the {}, passed on with the request."
_STREAM = {
    "stderr": "Redirect the standard error stream of the container. Defaults to true.",
    "stdin": "Redirect the standard input stream to the container. Defaults to false.",
    "stdout": "Redirect the standard output stream of the container. Defaults to true.",
    "tty": "Allocate a terminal for the command. Defaults to false.",
}

DESCRIPTIONS = {
    "allowWatchBookmarks": "Ask for watch events of type BOOKMARK, which carry a resource version and no object. "
    "Servers without bookmarks ignore it. It has no effect without `watch`.",
    "command": "Command to run with its arguments. It is not run in a shell.",
    "container:attach": _CONTAINER,
    "container:exec": _CONTAINER,
    "container:log": _CONTAINER,
    "continue": "Token from the previous page of a list; the server returns the page after it. The other "
    "parameters must be those of the first page. A token that is too old is answered with status 410 and reason "
    "Expired: use the token in that answer, or begin a new list.",
    "dryRun": "Run every step of the request except storing the result. The only valid value is All.",
    "fieldManager": "Name of the actor that makes this change, for managedFields. At most 128 printable characters. "
    "Defaults to the part of the user agent before the first slash.",
    "fieldManager:patch": "Name of the actor that makes this change, for managedFields. At most 128 printable "
    "characters. Required for apply patches; other patches default to the part of the user agent before the "
    "first slash.",
    "fieldSelector": "A selector to restrict the list of returned objects by their fields. Defaults to everything.",
    "fieldValidation": "How to treat unknown and repeated fields in the body: Ignore drops them, Warn drops them "
    "with a warning, Strict rejects the request. Defaults to Warn.",
    "follow": "Keep the log stream open and send new lines as they are written. Defaults to false.",
    "force": "Take over fields that another manager owns. Only valid for apply patches.",
    "gracePeriodSeconds": "Seconds before the object is deleted. 0 deletes it at once. The default depends on the "
    "kind.",
    "ignoreStoreReadErrorWithClusterBreakingPotential": "Delete an object that can no longer be read from storage, "
    "without its finalizers and other safeguards. This may break the workload that depends on it.",
    "insecureSkipTLSVerifyBackend": "Do not verify the certificate of the backend that serves the log.",
    "labelSelector": "A selector to restrict the list of returned objects by their labels. Defaults to everything.",
    "limit": "Maximum number of objects in one answer. If there are more, metadata.continue of the list holds the "
    "token for the next page. All pages show the state at the time of the first one.",
    "limitBytes": "Maximum number of bytes of log to return.",
    "name": "Name of the object.",
    "namespace": "Namespace of the objects; it also decides the scope of authentication and authorization.",
    "orphanDependents": "Deprecated: use propagationPolicy. Whether dependent objects lose this owner instead of "
    "being deleted.",
    "path": "Path to the resource.",
    "path:node": _PROXY.format("node"),
    "path:pod": _PROXY.format("pod"),
    "path:service": _PROXY.format("service"),
    "ports": "Ports to forward. Required for WebSocket connections.",
    "pretty": "If 'true', the answer is indented. Defaults to 'false', except for user agents of browsers and "
    "command-line HTTP tools such as curl and wget.",
    "previous": "Return the log of the previous, terminated container. Defaults to false.",
    "propagationPolicy": "How dependent objects are deleted: Orphan keeps them, Background deletes them later, "
    "Foreground deletes them first.",
    "resourceVersion": "Resource version that the answer is based on; resourceVersionMatch says how. Unset means the "
    "most recent version.",
    "resourceVersionMatch": "How resourceVersion applies to a list: Exact or NotOlderThan.",
    "sendInitialEvents": "Begin a watch with one ADDED event for each existing object, followed by a bookmark with "
    "the annotation k8s.io/initial-events-end.",
    "shardSelector": "Restrict a list or watch to one shard of the objects.",
    "sinceSeconds": "Return only log lines of the last seconds, counted from now.",
    "stream": "Container log stream to return: All, Stdout or Stderr.",
    "tailLines": "Number of lines from the end of the log to return. Defaults to the whole log.",
    "timeoutSeconds": "Seconds after which the server ends the list or watch, whether it is complete or not.",
    "timestamps": "Begin each log line with an RFC 3339 timestamp. Defaults to false.",
    "watch": "Watch for changes to the described resources and send them as a stream of events, beginning after "
    "resourceVersion.",
    **{f"{name}:{use}": text for name, text in _STREAM.items() for use in ("attach", "exec")},
}


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
"""Parameters that v2 documents define once, with the suffix of their shared name. A word after a colon distinguishes
parameters of the same name with different meanings."""


def name_of(parameter: str) -> str:
    return parameter.partition(":")[0]


def type_of(parameter: str) -> str:
    name = name_of(parameter)
    return "boolean" if name in _BOOLEANS else "integer" if name in _INTEGERS else "string"


def place(parameter: str) -> dict[str, Any]:
    """Name, description and location of a parameter."""
    entry: dict[str, Any] = {"description": DESCRIPTIONS[parameter], "name": name_of(parameter)}
    if parameter in _IN_PATH:
        return {**entry, "in": "path", "required": True}
    return {**entry, "in": "query"}
