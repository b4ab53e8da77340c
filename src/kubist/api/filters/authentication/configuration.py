"""AuthenticationConfiguration file of `--authentication-config`: JWT authenticators and anonymous access."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Sequence
from typing import NamedTuple

from kubist.api.filters import config_file
from kubist.api.filters.authentication.authentication import Anonymous, Audiences, Known
from kubist.api.filters.authentication.jwt_config import SHAPE as JWT
from kubist.api.filters.authentication.jwt_config import JWTReader
from kubist.api.filters.authentication.oidc import OIDC, Issuer
from kubist.api.filters.config_file import FileChanges
from kubist.model.meta.fields import FieldError, duplicate, forbidden, invalid, summary, too_many
from kubist.model.meta.object import Object

log = logging.getLogger("kubist.filters")

SHAPE = {"jwt": [JWT], "anonymous": {"enabled": bool, "conditions": [{"path": str}]}}
LIMIT = 64
READY_WITHIN = 60.0
"""Maximum seconds that the issuers of a changed file have to publish their keys."""


class AuthenticationConfiguration(NamedTuple):
    """Valid configuration, and the content of its file."""

    issuers: Sequence[Issuer]
    anonymous: Anonymous | None
    content: bytes


def load(path: str, disallowed: Collection[str]) -> AuthenticationConfiguration:
    """Reads and validates a file. ValueError names the file. `disallowed`: issuers that no authenticator may use."""
    try:
        return parse(config_file.read(path), disallowed)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def parse(content: bytes, disallowed: Collection[str]) -> AuthenticationConfiguration:
    """Parsed configuration. ValueError lists all errors."""
    try:
        config = config_file.decode(content, "AuthenticationConfiguration", SHAPE)
    except ValueError as error:
        raise ValueError(f"failed to load authentication configuration: {error}") from None
    specs = config.get("jwt") or []
    if len(specs) > LIMIT:
        raise _invalid([too_many("jwt", len(specs), LIMIT)])
    readers = [JWTReader(spec, f"jwt[{index}]", disallowed) for index, spec in enumerate(specs)]
    errors: list[FieldError] = []
    for index, reader in enumerate(readers):
        errors += reader.errors
        for name in ("url", "discoveryURL"):
            value = _issuer(specs[index]).get(name, "")
            if (value or name == "url") and value in [_issuer(spec).get(name, "") for spec in specs[:index]]:
                errors.append(duplicate(f"jwt[{index}].issuer.{name}", value))
    anonymous = config.get("anonymous")
    if anonymous and anonymous.get("conditions") and not anonymous.get("enabled"):
        why = "enabled should be set to true when conditions are defined"
        paths = [{"Path": condition.get("path", "")} for condition in anonymous["conditions"]]
        errors.append(invalid("anonymous.conditions", paths, why))
    if errors:
        raise _invalid(errors)
    return AuthenticationConfiguration(
        [reader.issuer() for reader in readers], _anonymous(anonymous), content
    )


def _invalid(errors: list[FieldError]) -> ValueError:
    return ValueError(f"invalid authentication configuration: {summary(errors)}")


def _issuer(spec: Object) -> Object:
    issuer: Object = spec.get("issuer") or {}
    return issuer


def _anonymous(config: Object | None) -> Anonymous | None:
    if config is None:
        return None
    paths = frozenset(condition.get("path", "") for condition in config.get("conditions") or ())
    return Anonymous(config.get("enabled", False), paths)


class JWTAuthenticators:
    """JWT authenticators of the file or the flags, in order. A TokenError from one ends the search."""

    def __init__(self, issuers: Sequence[Issuer], audiences: Audiences) -> None:
        self._audiences = audiences
        self._authenticators = self._build(issuers)
        self._file: FileChanges | None = None
        self._disallowed: Collection[str] = ()
        self.anonymous: Anonymous | None = None
        """Anonymous access in the file. It cannot change while the server runs."""

    @classmethod
    def of_file(cls, path: str, disallowed: Collection[str], audiences: Audiences) -> JWTAuthenticators:
        """Authenticators of a file. `follow` loads its changes."""
        configuration = load(path, disallowed)
        made = cls(configuration.issuers, audiences)
        made._file, made._disallowed, made.anonymous = (
            FileChanges(path, configuration.content),
            disallowed,
            configuration.anonymous,
        )
        return made

    async def authenticate(self, token: str, audiences: Audiences) -> Known | None:
        for authenticator in self._authenticators:
            known = await authenticator.authenticate(token, audiences)
            if known is not None:
                return known
        return None

    async def follow(self) -> None:
        """Loads changes of the file. The old authenticators stay in use until the new issuers have published
        their keys."""
        while self._file is not None:
            content = await self._file.next()
            try:
                configuration = await asyncio.to_thread(parse, content, self._disallowed)
                if configuration.anonymous != self.anonymous:
                    raise _invalid([forbidden("anonymous", "changed from initial configuration file")])
                missing = await self._replace(configuration.issuers)
            except (ValueError, OSError) as error:
                log.error("keeping the old authentication configuration: %s: %s", self._file.path, error)
                continue
            if missing:
                why = f"the keys of the issuer {missing} cannot be fetched"
                log.error(
                    "keeping the old authentication configuration for now: %s: %s", self._file.path, why
                )
                self._file.forget()
            else:
                log.info("loaded the new authentication configuration %s", self._file.path)

    async def close(self) -> None:
        await asyncio.gather(*(authenticator.keys.close() for authenticator in self._authenticators))

    def _build(self, issuers: Sequence[Issuer]) -> list[OIDC]:
        return [OIDC(issuer, self._audiences) for issuer in issuers]

    async def _replace(self, issuers: Sequence[Issuer]) -> str:
        """Replaces the authenticators once all issuers have keys. Otherwise returns the first issuer without keys."""
        fresh = self._build(issuers)
        unused = fresh
        try:
            ready = await asyncio.gather(*(each.keys.ready_within(READY_WITHIN) for each in fresh))
            if all(ready):
                unused, self._authenticators = self._authenticators, fresh
        finally:
            for authenticator in unused:
                authenticator.keys.cancel()
        return next((issuer.url for issuer, is_ready in zip(issuers, ready, strict=True) if not is_ready), "")
