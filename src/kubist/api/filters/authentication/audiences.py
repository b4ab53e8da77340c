"""Audiences of bearer tokens: which of the requested audiences a token is valid for."""

from __future__ import annotations

from kubist.api.filters.authorization.query import quoted_list

Audiences = tuple[str, ...]


def accepted(own: Audiences, targets: Audiences) -> Audiences | None:
    """Requested audiences of a token without audiences, which is valid for the server itself. None if no requested
    audience is the server's."""
    if not targets:
        return ()
    return tuple(audience for audience in targets if audience in own) or None


def named(claim: object, own: Audiences) -> Audiences:
    """Audiences in the `aud` claim of a token: one or several, or the server's if the claim is empty."""
    if isinstance(claim, str):
        return (claim,) if claim else own
    return tuple(claim) if isinstance(claim, list) and claim else own


def common(own: Audiences, targets: Audiences) -> Audiences:
    """Requested audiences that a token names."""
    return tuple(audience for audience in targets if audience in own)


def mismatch(own: Audiences, targets: Audiences) -> str:
    """Error text for a token with other audiences."""
    return f"token audiences {quoted_list(own)} is invalid for the target audiences {quoted_list(targets)}"
