"""/healthz, /livez and /readyz: named checks, one at a time or all, short or verbose."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator

from kubist.base.http.messages import Response

Check = Callable[[], str | Awaitable[str]]
"""Returns the problem as text; empty if the check passes."""

_PLAIN = (b"Content-Type", b"text/plain; charset=utf-8")
_TEXT = [_PLAIN, (b"X-Content-Type-Options", b"nosniff")]


class Health:
    """Health checks of a server. `ping` and `log` always pass and exist because kube-apiserver has them."""

    def __init__(self) -> None:
        self._checks: dict[str, dict[str, Check]] = {"healthz": {}, "livez": {}, "readyz": {}}
        for endpoint in self._checks:
            self.add("ping", lambda: "", endpoint)
            self.add("log", lambda: "", endpoint)
        self._results: dict[tuple[str, str], list[int]] = {}
        """(check, endpoint) → last result (1 passed, 0 failed), number of failures, number of passes."""

    async def _run(self, endpoint: str, name: str, check: Check) -> str:
        outcome = check()
        problem = outcome if isinstance(outcome, str) else await outcome
        result = self._results.setdefault((name, endpoint), [0, 0, 0])
        passed = 0 if problem else 1
        result[0] = passed
        result[1 + passed] += 1
        return problem

    def samples(self) -> Iterator[str]:
        """Lines of /metrics/slis."""
        if not self._results:
            return
        results = sorted(self._results.items())
        yield "# HELP kubernetes_healthcheck [STABLE] Last result of a health check: 1 if it passed."
        yield "# TYPE kubernetes_healthcheck gauge"
        for (name, endpoint), (passed, _, _) in results:
            yield f'kubernetes_healthcheck{{name="{name}",type="{endpoint}"}} {passed}'
        yield "# HELP kubernetes_healthchecks_total [STABLE] Number of results of a health check."
        yield "# TYPE kubernetes_healthchecks_total counter"
        for (name, endpoint), (_, failures, passes) in results:
            for status, count in (("error", failures), ("success", passes)):
                if count:
                    labels = f'name="{name}",status="{status}",type="{endpoint}"'
                    yield f"kubernetes_healthchecks_total{{{labels}}} {count}"

    def add(self, name: str, check: Check, *endpoints: str) -> None:
        for endpoint in endpoints or ("healthz", "livez", "readyz"):
            self._checks[endpoint][name] = check

    def paths(self) -> list[str]:
        """Paths of the individual checks."""
        return [f"/{endpoint}/{name}" for endpoint, checks in self._checks.items() for name in checks]

    async def answer(self, path: str, query: dict[str, str], excluded: list[str]) -> Response | None:
        """Response for a path; None if it names no check."""
        endpoint, one, name = path.removeprefix("/").partition("/")
        checks = self._checks.get(endpoint)
        if checks is None:
            return None
        if one:
            check = checks.get(name)
            if check is None:
                return None
            problem = await self._run(endpoint, name, check)
            if problem:
                return _text(500, f"internal server error: {problem}\n")
            return Response(200, [_PLAIN], b"ok")
        lines = []
        failed = []
        for known, check in checks.items():
            if known in excluded:
                lines.append(f"[+]{known} excluded: ok")
                continue
            problem = await self._run(endpoint, known, check)
            if problem:
                failed.append(known)
                lines.append(f"[-]{known} failed: reason withheld")
            else:
                lines.append(f"[+]{known} ok")
        unknown = [name for name in excluded if name not in checks]
        if unknown:
            names = ", ".join(f'"{name}"' for name in unknown)
            lines.append(f"warn: some health checks cannot be excluded: no matches for {names}")
        if failed:
            return _text(500, "\n".join([*lines, f"{endpoint} check failed"]) + "\n")
        if "verbose" in query:
            return _text(200, "\n".join([*lines, f"{endpoint} check passed"]) + "\n")
        return _text(200, "ok")


def _text(code: int, body: str) -> Response:
    return Response(code, list(_TEXT), body.encode())
