"""Schemas of fault rules."""

from __future__ import annotations

from kubist.model.meta.object import Object
from kubist.testbench.control_api.call import TEST_AGENT
from kubist.testbench.control_api.schemas import closed, count, text, texts
from kubist.testbench.faults.matching import RESOURCE_VERBS


def _duration(about: str) -> Object:
    about += " A duration such as 500ms or 2s, or a number of seconds; real time, at most 1h."
    return {"oneOf": [{"type": "string"}, {"type": "number"}], "description": about}


def _true(about: str) -> Object:
    return {"type": "boolean", "enum": [True], "description": about}


REQUEST_FILTERS: Object = {
    "verb": texts(f"Verb of the request: {', '.join(RESOURCE_VERBS)}."),
    "resource": texts("Such as deployments, deployments.apps, pods/status or *."),
    "namespace": texts("Namespace; may contain *."),
    "name": texts("Name of the object; may contain *."),
    "user": texts("Name of the user; may contain *."),
    "userAgent": texts("Prefix of the User-Agent header."),
}
"""Criteria that fault rules and recordings share."""
FAULT_RULE: Object = {
    "type": "object",
    "additionalProperties": False,
    "description": f"Spares clients whose User-Agent begins with {TEST_AGENT}, unless it names user agents.",
    "properties": {
        **REQUEST_FILTERS,
        "labelSelector": text("Labels of the object: in the body of a create, otherwise as stored."),
        "expression": text("CEL expression over `request`."),
        "nth": count("Acts only on this matching request, counted from 1."),
        "every": count("Acts on every so many matching requests."),
        "probability": {"type": "number", "maximum": 1, "description": "Acts on this share of the requests."},
        "seed": count("Seed of the probability. The same seed gives the same choices.", 0),
        "times": count("Acts on at most so many requests."),
        "status": {"type": "integer", "minimum": 400, "maximum": 599, "description": "Returns this error."},
        "reason": text("Reason of the Status."),
        "message": text("Message of the Status."),
        "retryAfter": _duration("Sets Retry-After, in whole seconds."),
        "delay": _duration("Waits before the request takes effect."),
        "delayAfter": _duration("Waits after the request took effect, before the response."),
        "close": {
            "type": "string",
            "enum": ["before", "after"],
            "description": "Closes the connection before or after the request takes effect, without a response.",
        },
        "truncate": count("Sends only so many bytes of the body, then closes the connection.", 0),
        "cutAfter": count("Cuts a watch after so many events; 0 cuts it now.", 0),
        "pause": _duration("Holds the events of a watch for a time."),
        "delayEvents": _duration("Sends each event of a watch later."),
        "withholdBookmarks": _true("Sends no periodic bookmarks on a watch."),
        "staleRead": {
            "oneOf": [{"type": "boolean", "enum": [True]}, {"type": "string"}],
            "description": "Serves reads from this resource version; true: the newest when the rule is added.",
        },
        "expireHistory": _true("Expires all resource versions so far: 410 for watches and lists from them."),
        "takeLease": text("Makes this holder take over the Lease that namespace and name give."),
        "leaseDuration": _duration("Duration of the taken Lease, in whole seconds; 15s by default."),
    },
}
FAULT: Object = closed(
    {
        **FAULT_RULE["properties"],
        "id": {"type": "string"},
        "matches": count("Requests that matched.", 0),
        "hits": count("Requests and watches on which the rule acted.", 0),
    },
    "id",
    "matches",
    "hits",
)
