"""Mapping of the claims of a verified JWT to a user, by claim names or CEL expressions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from kubist.api.filters.authentication.authentication import CREDENTIAL_ID, INVALID, TokenError, with_groups
from kubist.api.filters.authentication.tokens import Claims, is_texts
from kubist.api.resources.context import User
from kubist.base.offload import Lengthy, elsewhere
from kubist.model.cel import PER_CALL_LIMIT, CostExceeded, EvaluationError, Program
from kubist.model.cel.escaping import unescape

TEXTS = "expression must return a string or a list of strings"


class Source(NamedTuple):
    """Source of one user attribute: a claim with a prefix, or an expression. With neither, the attribute is empty."""

    claim: str = ""
    prefix: str = ""
    program: Program | None = None


NOTHING = Source()


class Rule(NamedTuple):
    """Expression that must be true, and the error message if it is not."""

    program: Program
    message: str


@dataclass(slots=True, frozen=True)
class ClaimMapping:
    """Claim mappings and validation rules of one JWT authenticator."""

    username: Source
    groups: Source = NOTHING
    uid: Source = NOTHING
    extra: Sequence[tuple[str, Program]] = ()
    required: Sequence[tuple[str, str]] = ()
    claim_rules: Sequence[Rule] = ()
    user_rules: Sequence[Rule] = ()

    async def user(self, claims: Claims) -> User:
        """The user that the claims describe. Raises TokenError if a claim is missing or a rule fails."""
        try:
            try:
                user = self._user(claims)
            except Lengthy:
                user = await elsewhere(self._user, claims)
        except RecursionError:
            raise TokenError(INVALID) from None
        return with_groups(user)

    def _user(self, claims: Claims) -> User:
        variables: dict[str, Any] = {"claims": _cel_value(claims)} if self._has_programs() else {}
        name = self._username(claims, variables)
        groups = self._groups(claims, variables)
        uid = self._uid(claims, variables)
        extra = self._extra(claims, variables)
        self._check_required(claims)
        _check_rules(self.claim_rules, variables, "claim validation expression")
        user = User(name, uid, groups, tuple(extra.items()))
        if self.user_rules:
            _check_rules(self.user_rules, {"user": user_value(user)}, "user info validation rule")
        return user

    def _has_programs(self) -> bool:
        sources = (self.username, self.groups, self.uid)
        return bool(self.extra or self.claim_rules or any(source.program is not None for source in sources))

    def _username(self, claims: Claims, variables: dict[str, Any]) -> str:
        claim, prefix, program = self.username
        if program is not None:
            return _one_text(program, variables, "username", empty=False)
        name = _text(claims, claim, f'oidc: parse username claims "{claim}"')
        if claim == "email" and "email_verified" in claims:
            verified = claims["email_verified"]
            if not isinstance(verified, bool):
                raise TokenError("oidc: parse 'email_verified' claim: not a boolean")
            if not verified:
                raise TokenError("oidc: email not verified")
        return prefix + name

    def _groups(self, claims: Claims, variables: dict[str, Any]) -> tuple[str, ...]:
        claim, prefix, program = self.groups
        if program is not None:
            return _texts(_value(program, variables, "group claim expression"), "group claim expression")
        if not claim or claims.get(claim) is None:
            return ()
        value = claims[claim]
        groups = [value] if isinstance(value, str) else value
        if not is_texts(groups):
            raise TokenError(f'oidc: parse groups claim "{claim}": not a string or a list of strings')
        return tuple(prefix + group for group in groups)

    def _uid(self, claims: Claims, variables: dict[str, Any]) -> str:
        if self.uid.program is not None:
            return _one_text(self.uid.program, variables, "uid")
        claim = self.uid.claim
        return _text(claims, claim, f'oidc: parse uid claim "{claim}"') if claim else ""

    def _extra(self, claims: Claims, variables: dict[str, Any]) -> dict[str, tuple[str, ...]]:
        extra: dict[str, tuple[str, ...]] = {}
        if claims.get("jti"):
            extra[CREDENTIAL_ID] = (f"JTI={claims['jti']}",)
        for key, program in self.extra:
            value = _value(program, variables, "extra claim expression")
            if values := _texts(value, f"extra claim expression: {program.expression}"):
                extra[key] = values
        return extra

    def _check_required(self, claims: Claims) -> None:
        for claim, expected in self.required:
            if claim not in claims:
                raise TokenError(f"oidc: required claim {claim} not present in ID token")
            value = _text(claims, claim, f"oidc: parse claim {claim}")
            if value != expected:
                raise TokenError(
                    f"oidc: required claim {claim} value does not match. Got = {value}, want = {expected}"
                )


class _Map(dict[str, Any]):
    """Map whose keys may also be written in escaped form: `claims.example__dot__org`."""

    def __contains__(self, key: object) -> bool:
        return super().__contains__(unescape(key) if isinstance(key, str) else key)

    def __getitem__(self, key: str) -> Any:
        return super().__getitem__(unescape(key) if isinstance(key, str) else key)

    def get(self, key: str, default: Any = None) -> Any:
        try:
            return self[key]
        except KeyError:
            return default


def _cel_value(value: Any) -> Any:
    """JSON value as a CEL value: every number is a double."""
    if isinstance(value, dict):
        return _Map((name, _cel_value(item)) for name, item in value.items())
    if isinstance(value, list):
        return [_cel_value(item) for item in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def user_value(user: User) -> dict[str, Any]:
    """The user as user validation rules see it."""
    extra = _Map((key, list(values)) for key, values in user.extra)
    return {"username": user.name, "uid": user.uid, "groups": list(user.groups), "extra": extra}


def _text(claims: Claims, claim: str, context: str) -> str:
    if claim not in claims:
        raise TokenError(f"{context}: claim not present")
    value = claims[claim]
    if not isinstance(value, str):
        raise TokenError(f"{context}: not a string")
    return value


def _value(program: Program, variables: dict[str, Any], what: str) -> Any:
    try:
        return program.evaluate(variables, PER_CALL_LIMIT)[0]
    except (EvaluationError, CostExceeded) as error:
        why = f"expression '{program.expression}' resulted in error: {error}"
        raise TokenError(f"oidc: error evaluating {what}: {why}") from None


def _one_text(program: Program, variables: dict[str, Any], part: str, *, empty: bool = True) -> str:
    what = f"{part} claim expression"
    value = _value(program, variables, what)
    if not isinstance(value, str):
        raise TokenError(f"oidc: error evaluating {what}: {what} must return a string")
    if not value and not empty:
        raise TokenError(f"oidc: empty {part} via CEL expression is not allowed")
    return value


def _texts(value: Any, what: str) -> tuple[str, ...]:
    """A string or a list of strings; empty strings are dropped."""
    if value is None:
        return ()
    values = [value] if isinstance(value, str) else value
    if not is_texts(values):
        raise TokenError(f"oidc: error evaluating {what}: {TEXTS}")
    return tuple(text for text in values if text)


def _check_rules(rules: Sequence[Rule], variables: dict[str, Any], what: str) -> None:
    values = [(rule, _value(rule.program, variables, what)) for rule in rules]
    for rule, value in values:
        if value is not True:
            why = f"validation expression '{rule.program.expression}' failed: {rule.message}"
            raise TokenError(f"oidc: error evaluating {what}: {why}")
