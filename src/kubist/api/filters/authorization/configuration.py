"""AuthorizationConfiguration file of `--authorization-config`: the authorizers in order. Changes are loaded
while the server runs."""

from __future__ import annotations

import asyncio
import logging
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from kubist.api.filters import config_file
from kubist.api.filters.authorization.match_conditions import compile_condition
from kubist.api.filters.config_file import DURATION, FileChanges
from kubist.model.cel import CompileError, Program
from kubist.model.meta import durations, names
from kubist.model.meta.fields import (
    FieldError,
    duplicate,
    invalid,
    not_supported,
    required,
    summary,
    too_many,
)
from kubist.model.meta.object import Object

log = logging.getLogger("kubist.filters")


TYPES = ("ABAC", "AlwaysAllow", "AlwaysDeny", "Node", "RBAC", "Webhook")
STARTED = ("ABAC", "Node", "RBAC")
"""Types that a changed file may only name if the file at start-up did."""
CONDITIONS_LIMIT = 64
SHAPE = {
    "authorizers": [
        {
            "type": str,
            "name": str,
            "webhook": {
                "authorizedTTL": DURATION,
                "cacheAuthorizedRequests": bool,
                "unauthorizedTTL": DURATION,
                "cacheUnauthorizedRequests": bool,
                "timeout": DURATION,
                "subjectAccessReviewVersion": str,
                "matchConditionSubjectAccessReviewVersion": str,
                "failurePolicy": str,
                "connectionInfo": {"type": str, "kubeConfigFile": str},
                "matchConditions": [{"expression": str}],
            },
        }
    ]
}


class WebhookSettings(NamedTuple):
    """Settings of one webhook. Times are seconds; a TTL of 0 means that responses are not cached."""

    kubeconfig: str
    version: str
    allowed_for: float
    denied_for: float
    timeout: float = 30.0
    deny_on_failure: bool = False
    conditions: tuple[Program, ...] = ()


class AuthorizerSettings(NamedTuple):
    type: str
    name: str
    webhook: WebhookSettings | None = None


class AuthorizationFile:
    """The configuration file. `settings` are in effect; `follow` loads changes and calls `use`."""

    def __init__(self, path: str) -> None:
        content = Path(path).read_bytes()
        try:
            self.settings = parse(content)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
        self._changes = FileChanges(path, content)
        self._required = {each.type for each in self.settings} - {"Webhook"}
        self.use: Callable[[list[AuthorizerSettings]], None] = lambda _settings: None

    async def follow(self) -> None:
        path = self._changes.path
        while True:
            content = await self._changes.next()
            try:
                settings = await asyncio.to_thread(parse, content, self._required)
                for each in settings:
                    if each.type in STARTED and each.type not in self._required:
                        why = "is not allowed if it was not enabled at initial server startup"
                        raise ValueError(f"authorizer type {each.type} {why}")
                self.use(settings)
            except (ValueError, OSError) as error:
                log.error("keeping the old authorization configuration: %s: %s", path, error)
                continue
            self.settings = settings
            log.info("loaded the new authorization configuration %s", path)


def parse(content: bytes, required_types: Iterable[str] = ()) -> list[AuthorizerSettings]:
    """Authorizers of a file. ValueError lists all errors."""
    config: Object = {}
    if content:
        try:
            config = config_file.decode(content, "AuthorizationConfiguration", SHAPE)
        except ValueError as error:
            raise ValueError(f"failed to load AuthorizationConfiguration from file: {error}") from None
    specs = config.get("authorizers") or []
    errors: list[FieldError] = []
    if not specs:
        errors.append(required("authorizers", "at least one authorization mode must be defined"))
    authorizers = _Reader(errors).read(specs)
    if errors:
        raise ValueError(summary(errors))
    problems = [
        f"expected name {each.type.lower()} for authorizer {each.type} instead of {each.name}"
        for each in authorizers
        if each.type != "Webhook" and each.name != each.type.lower()
    ]
    missing = sorted(set(required_types) - {each.type for each in authorizers})
    if missing:
        problems.append(f"missing required types: [{' '.join(missing)}]")
    if problems:
        raise ValueError(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")
    return authorizers


class _Reader:
    """Validates authorizers by kube-apiserver's rules."""

    def __init__(self, errors: list[FieldError]) -> None:
        self._errors = errors

    def read(self, specs: list[Object]) -> list[AuthorizerSettings]:
        authorizers: list[AuthorizerSettings] = []
        types: set[str] = set()
        seen: set[str] = set()
        for index, spec in enumerate(specs):
            path = f"authorizers[{index}]"
            type_, name = spec.get("type", ""), spec.get("name", "")
            if not type_:
                self._errors.append(required(f"{path}.type"))
                continue
            if type_ not in TYPES:
                self._errors.append(not_supported(f"{path}.type", type_, TYPES))
                continue
            if type_ in types and type_ != "Webhook":
                self._errors.append(duplicate(f"{path}.type", type_))
                continue
            types.add(type_)
            if not name:
                self._errors.append(required(f"{path}.name"))
            elif name in seen:
                self._errors.append(duplicate(f"{path}.name", name))
            elif wrong := names.dns_subdomain(name):
                why = f"authorizer name is invalid: {', '.join(wrong)}"
                self._errors.append(invalid(f"{path}.name", name, why))
            seen.add(name)
            webhook = None
            if type_ == "Webhook":
                webhook = self._webhook(spec.get("webhook"), path)
            elif "webhook" in spec:
                why = "may only be specified when type=Webhook"
                self._errors.append(invalid(f"{path}.webhook", "non-null", why))
            authorizers.append(AuthorizerSettings(type_, name, webhook))
        return authorizers

    def _webhook(self, spec: Object | None, path: str) -> WebhookSettings | None:
        if spec is None:
            self._errors.append(required(f"{path}.webhook", "required when type=Webhook"))
            return None
        timeout = spec.get("timeout", 0.0)
        if not timeout:
            self._errors.append(required(f"{path}.timeout"))
        elif not 0 < timeout <= 30:
            self._errors.append(
                invalid(f"{path}.timeout", durations.written(timeout), "must be > 0s and <= 30s")
            )
        allowed = self._ttl(spec, "authorizedTTL", 300.0, path)
        denied = self._ttl(spec, "unauthorizedTTL", 30.0, path)
        self._choice(spec, "subjectAccessReviewVersion", ("v1", "v1beta1"), path)
        conditions = spec.get("matchConditions") or []
        version = "matchConditionSubjectAccessReviewVersion"
        if spec.get(version):
            self._choice(spec, version, ("v1",), path)
        elif conditions:
            self._errors.append(required(f"{path}.{version}", "required if match conditions are specified"))
        self._choice(spec, "failurePolicy", ("NoOpinion", "Deny"), path)
        self._connection(spec.get("connectionInfo") or {}, f"{path}.connectionInfo")
        return WebhookSettings(
            (spec.get("connectionInfo") or {}).get("kubeConfigFile", ""),
            spec.get("subjectAccessReviewVersion", ""),
            allowed if spec.get("cacheAuthorizedRequests", True) else 0.0,
            denied if spec.get("cacheUnauthorizedRequests", True) else 0.0,
            timeout,
            spec.get("failurePolicy") == "Deny",
            self._conditions(conditions, f"{path}.matchConditions"),
        )

    def _ttl(self, spec: Object, name: str, default: float, path: str) -> float:
        seconds: float = spec.get(name) or default
        if seconds < 0:
            self._errors.append(invalid(f"{path}.{name}", durations.written(seconds), "must be > 0s"))
        return seconds

    def _choice(self, spec: Object, name: str, choices: tuple[str, ...], path: str) -> None:
        value = spec.get(name, "")
        if not value:
            self._errors.append(required(f"{path}.{name}"))
        elif value not in choices:
            self._errors.append(not_supported(f"{path}.{name}", value, choices))

    def _connection(self, info: Object, path: str) -> None:
        type_, file = info.get("type", ""), info.get("kubeConfigFile")
        where = f"{path}.kubeConfigFile"
        if not type_:
            self._errors.append(required(f"{path}.type"))
        elif type_ == "InClusterConfig":
            if file is not None:
                self._errors.append(invalid(where, file, "can only be set when type=KubeConfigFile"))
            else:
                why = "InClusterConfig is not supported by this server; use KubeConfigFile"
                self._errors.append(invalid(f"{path}.type", type_, why))
        elif type_ != "KubeConfigFile":
            self._errors.append(not_supported(f"{path}.type", type_, ("InClusterConfig", "KubeConfigFile")))
        elif not file:
            self._errors.append(required(where))
        elif not Path(file).is_absolute():
            self._errors.append(invalid(where, file, "must be an absolute path"))
        else:
            try:
                if not stat.S_ISREG(Path(file).stat().st_mode):
                    self._errors.append(invalid(where, file, "must be a regular file"))
            except OSError as error:
                why = f"error loading file: stat {file}: {str(error.strerror).lower()}"
                self._errors.append(invalid(where, file, why))

    def _conditions(self, conditions: list[Object], path: str) -> tuple[Program, ...]:
        if len(conditions) > CONDITIONS_LIMIT:
            self._errors.append(too_many(path, len(conditions), CONDITIONS_LIMIT))
            return ()
        programs: dict[str, Program | None] = {}
        for index, condition in enumerate(conditions):
            where, expression = f"{path}[{index}].expression", condition.get("expression", "")
            if not expression.strip():
                self._errors.append(required(where))
            elif expression in programs:
                self._errors.append(duplicate(where, expression))
            else:
                programs[expression] = None
                try:
                    programs[expression] = compile_condition(expression)
                except CompileError as error:
                    self._errors.append(invalid(where, expression, error.message))
        return tuple(program for program in programs.values() if program is not None)
