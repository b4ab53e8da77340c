"""CPU time of requests with growing lists: four times the items must not cost much more than four times the time."""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from kubist.api.resources.resource import Resource
from kubist.base.http.messages import Request, Response
from kubist.model.meta.object import Object
from tests.growth.filling import Path_, candidates, filled
from tests.live import TOKEN, Live

APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
JSON = "application/json"
VERBS = ("create", "update", "merge", "strategic", "json", "apply")
FACTOR = 4
LIMIT = 10.0
"""Maximum ratio of costs for FACTOR times the items. Linear work has the ratio FACTOR (more if a cache gets too
small), quadratic work its square."""
FLOOR = 0.08
"""Seconds of CPU time below which a request is cheap enough in any case."""
TRIES = 6
PAUSE = 0.2
"""Seconds between tries, so that work that an earlier request left behind does not count."""


@dataclass
class Growth:
    """Request with a cost that grew too fast."""

    case: str
    status: int
    small: float
    large: float

    def __str__(self) -> str:
        ratio = self.large / self.small
        return f"{self.case}: {self.small:.3f} s, then {self.large:.3f} s ({ratio:.1f}x, {self.status})"


class Prober:
    """Sends requests to the application of a server and measures the CPU time of the process."""

    def __init__(self, live: Live, token: str = TOKEN) -> None:
        self._live = live
        self._token = token
        self._number = 0

    def send(self, method: str, where: str, body: Any, content_type: str = JSON) -> tuple[int, float, bytes]:
        """Status, CPU seconds and body of the response."""
        path, _, query = where.partition("?")
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"authorization": f"Bearer {self._token}", "content-type": content_type}
        request = Request(method, path, query, headers, raw)

        async def timed() -> tuple[int, float, bytes]:
            begun = time.process_time()
            answer = await self._live.server.api(request)
            seconds = time.process_time() - begun
            assert isinstance(answer, Response)
            text = answer.body if isinstance(answer.body, bytes) else b"".join(answer.body)
            return answer.status, seconds, text

        gc.disable()
        try:
            return self._live.run(timed())
        finally:
            gc.enable()

    def grows(self, case: str, request: Callable[[int], tuple[int, float]], count: int) -> Growth | None:
        """Compares the cost of `request` with `count` and with FACTOR times as many items. None if the growth
        is fine."""
        status, large = request(count * FACTOR)
        if large < FLOOR:
            return None
        small = 10.0
        for _ in range(TRIES):
            small = min(small, max(request(count)[1], 0.001))
            if large / small < LIMIT or large < FLOOR:
                return None
            time.sleep(PAUSE)
            large = min(large, request(count * FACTOR)[1])
        return Growth(case, status, small, large) if large / small >= LIMIT and large >= FLOOR else None

    def template(self, resource: Resource) -> Object:
        """Object of a kind that a create accepts, or the last candidate if none is accepted."""
        for body in (bodies := candidates(resource)):
            if self.send("POST", f"{collection(resource)}?dryRun=All", body)[0] == 201:
                return body
        return bodies[-1]

    def check(
        self,
        resource: Resource,
        template: Object,
        path: Path_,
        variant: str,
        count: int,
        verbs: tuple[str, ...] = VERBS,
    ) -> Iterator[Growth]:
        """Too fast growths of all writes of a field."""
        label = f"{resource.resource}.{resource.version} {'.'.join(path)} {variant}"
        at = collection(resource)
        inside = "/status" if path[0] == "status" and "status" in resource.subresources else ""

        def create(size: int) -> tuple[int, float]:
            body = filled(template, resource.schema, path, size, variant)
            return self.send("POST", f"{at}?dryRun=All", body)[:2]

        def change(verb: str, size: int) -> tuple[int, float]:
            """Status and cost of a change of an object that already has the items."""
            self._number += 1
            name = f"x{self._number}"
            begun = {**filled(template, resource.schema, path, size, "distinct"), "metadata": {"name": name}}
            if path[0] == "metadata":
                begun["metadata"] |= filled(template, resource.schema, path, size, "distinct")["metadata"]
                begun["metadata"]["name"] = name
            if self.send("POST", at, begun)[0] != 201:
                self.send("POST", at, {**template, "metadata": {"name": name}})
            body = filled(template, resource.schema, path, size, variant)
            body["metadata"] = {**body["metadata"], "name": name}
            query = "?dryRun=All&fieldManager=other"
            content_type = {"merge": MERGE, "strategic": STRATEGIC, "json": JSON_PATCH, "apply": APPLY}
            method = "PUT" if verb == "update" else "PATCH"
            if verb == "apply":
                query += "&force=true"
            sent: Any = body
            if verb == "json":
                sent = [{"op": "add", "path": f"/{path[0]}", "value": body[path[0]]}]
            target = f"{at}/{name}{inside}{query}"
            answer = self.send(method, target, sent, content_type.get(verb, JSON))[:2]
            self.send("DELETE", f"{at}/{name}?gracePeriodSeconds=0", b"")
            return answer

        for verb in verbs:
            request = create if verb == "create" else lambda size, verb=verb: change(verb, size)
            if verb != "create" and "patch" not in resource.verbs:
                continue
            if (grown := self.grows(f"{label} {verb}", request, count)) is not None:
                yield grown


def collection(resource: Resource) -> str:
    group = f"/apis/{resource.group}" if resource.group else "/api"
    where = "/namespaces/default" if resource.namespaced else ""
    return f"{group}/{resource.version}{where}/{resource.resource}"
