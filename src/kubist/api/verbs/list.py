"""list: a consistent view of a collection, whole or in chunks, from the cache or, for older versions, from the
history."""

from __future__ import annotations

import base64
import posixpath
import re
from typing import Any

import orjson

from kubist.api.verbs import resource_versions
from kubist.api.verbs.options import ListOptions, list_options
from kubist.api.verbs.resource_request import ResourceRequest
from kubist.api.verbs.responses import negotiate_representation, respond, respond_object
from kubist.api.verbs.selection import Selection, known_fields
from kubist.api.verbs.storage_version import check_list_is_convertible, entry_in_request_version
from kubist.base.http.messages import Response
from kubist.base.jsontext import json
from kubist.base.jsontext.errors import DecodeError
from kubist.base.jsontext.json import json_type
from kubist.model.meta import status
from kubist.storage.cache.cache import Collection, Entry
from kubist.storage.store import Compacted, Unavailable


async def list_(ctx: ResourceRequest) -> Response:
    representation = negotiate_representation(ctx, "list")
    options = await list_options(ctx.query)
    virtual = ctx.resource.strategy.virtual_objects(ctx.info.namespace)
    if virtual is not None:
        fields = known_fields(ctx, options.fields)
        items = [
            dict(obj)
            for obj in virtual
            if options.labels.matches(obj["metadata"].get("labels"))
            and fields.matches({"metadata.name": obj["metadata"]["name"]})
        ]
        for item in items:
            del item["kind"], item["apiVersion"]
        kind, api_version = ctx.resource.list_kind, ctx.resource.api_version
        listed = {"kind": kind, "apiVersion": api_version, "metadata": {}, "items": items}
        return await respond_object(ctx, 200, listed, representation)
    page = await find_page(ctx, options, Selection(ctx, options))
    if ctx.resource.custom:
        page.entries = [await entry_in_request_version(ctx, entry) for entry in page.entries]
    body = await representation.whole_list(page.entries, page.meta(custom=ctx.resource.custom is not None))
    return await respond(ctx, 200, body, representation.content_type)


class Page:
    """Page of a list: entries, resource version, start key of the next chunk, number of remaining entries."""

    __slots__ = ("entries", "next", "remaining", "revision")

    def __init__(self, revision: int) -> None:
        self.revision = revision
        self.entries: list[Entry] = []
        self.next = ""
        self.remaining: int | None = None

    def meta(self, *, custom: bool) -> dict[str, Any]:
        meta: dict[str, Any] = {"resourceVersion": str(self.revision)}
        if self.next:
            meta["continue"] = _continue_token(self.revision, self.next)
            if self.remaining is not None:
                meta["remainingItemCount"] = self.remaining
        elif custom:
            meta["continue"] = ""
        return meta


async def find_page(ctx: ResourceRequest, options: ListOptions, selection: Selection) -> Page:
    """Page of the list that the options select."""
    collection = ctx.api.registry.collection(ctx.resource)
    if not collection.loaded:
        await collection.ready()
    if ctx.resource.custom:
        check_list_is_convertible(ctx, collection, options, selection)
    await selection.ready(collection)
    requested_version = options.resource_version
    if collection.unreadable and requested_version != "0":
        await _catch_up(ctx)
        ctx.api.registry.readable(collection, selection.key or selection.prefix)
    limit = options.limit
    if options.continue_:
        revision, start = _read_token(options.continue_)
        if requested_version not in ("", "0"):
            raise status.bad_request("specifying resource version is not allowed when using continue")
        if requested_version and ctx.resource.strategy.cached:
            limit = 0
        if revision == ANY_VERSION:
            await _catch_up(ctx)
            return _today(ctx, collection, selection, limit, selection.prefix + start)
        await resource_versions.reach(ctx, revision)
        return await _past(collection, selection, limit, selection.prefix + start, revision)
    if not requested_version:
        await _catch_up(ctx)
        return _today(ctx, collection, selection, limit, "")
    version = resource_versions.parse(ctx, requested_version)
    if version == 0:
        return _today(ctx, collection, selection, limit if not ctx.resource.strategy.cached else 0, "")
    await resource_versions.reach(ctx, version)
    exact = options.resource_version_match == "Exact"
    if exact or (limit and not options.resource_version_match):
        return await _past(collection, selection, limit, "", version)
    return _today(ctx, collection, selection, limit, "")


async def _catch_up(ctx: ResourceRequest) -> None:
    try:
        await ctx.api.registry.cache.catch_up()
    except Unavailable as error:
        raise status.unavailable(str(error)) from None


def _today(
    ctx: ResourceRequest, collection: Collection, selection: Selection, limit: int, start: str
) -> Page:
    page = Page(ctx.api.registry.cache.revision)
    if selection.everything and not limit and not start:
        page.entries = list(collection.below(selection.prefix))
        return page
    _collect(page, selection.candidates(collection, start), selection, limit)
    if limit and len(page.entries) == limit:
        if selection.indexed:
            rest = selection.candidates(collection, page.entries[-1].key + "\0")
            if not any(selection.matches(entry) for entry in rest):
                return page
        _more(page, collection.entries, selection)
    return page


async def _past(collection: Collection, selection: Selection, limit: int, start: str, revision: int) -> Page:
    """Page at an earlier resource version, from the cache's window or the store's history."""
    page = Page(revision)
    try:
        entries = await collection.past(revision)
    except Compacted:
        raise _expired(start, selection) from None
    except Unavailable as error:
        raise status.unavailable(str(error)) from None
    if selection.converts:
        await selection.see(selection.among(entries, start))
    _collect(page, selection.among(entries, start), selection, limit)
    if limit and len(page.entries) == limit:
        _more(page, entries, selection)
    return page


def _expired(start: str, selection: Selection) -> status.APIError:
    """410 Expired. A chunked list gets a token that continues in the newest state."""
    if not start:
        return status.gone("The resourceVersion for the provided list is too old.")
    error = status.gone(
        "The provided continue parameter is too old to display a consistent list result. You can start a new "
        "list without the continue parameter, or use the continue token in this response to retrieve the "
        "remainder of the results. Continuing with the provided token results in an inconsistent list - objects "
        "that were created, modified, or deleted between the time the first chunk was returned and now may show "
        "up in the list."
    )
    token = _continue_token(ANY_VERSION, start[len(selection.prefix) :])
    error.list_meta = {"continue": token}
    return error


def _collect(page: Page, candidates: Any, selection: Selection, limit: int) -> None:
    plain = selection.everything
    entries = page.entries
    for entry in candidates:
        if plain or selection.matches(entry):
            entries.append(entry)
            if len(entries) == limit:
                break


def _more(page: Page, entries: Any, selection: Selection) -> None:
    """Set the start key of the next chunk if any entry, matching or not, follows the last one."""
    if selection.key is not None:
        return
    last = page.entries[-1].key
    after = entries.bisect_right(last)
    end = entries.bisect_left(selection.prefix[:-1] + "0")
    if after < end:
        page.next = last[len(selection.prefix) :] + "\0"
        if selection.everything:
            page.remaining = end - after


TOKEN_VERSION = "meta.k8s.io/v1"
_ALPHABET = re.compile(r"[A-Za-z0-9_-]*")
_LINE_BREAKS = {ord("\r"): None, ord("\n"): None}
ANY_VERSION = -1
"""Version of a token that continues a list in the newest state."""


def _continue_token(revision: int, start: str) -> str:
    """Continue token: version and start key of the next chunk, in kube-apiserver's form. `start` is relative to the
    list's prefix."""
    raw = orjson.dumps({"v": TOKEN_VERSION, "rv": revision, "start": start})
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _read_token(token: str) -> tuple[int, str]:
    """Version and relative start key of a token."""
    try:
        version, revision, start = _token_fields(json.parse(_token_text(token)))
    except DecodeError as error:
        raise _invalid_token(f": {error}") from None
    if version != TOKEN_VERSION:
        raise _invalid_token(f": server does not recognize this encoded version {version}")
    if revision == 0:
        raise _invalid_token(f": incorrect encoded start resourceVersion (version {TOKEN_VERSION})")
    if not start:
        raise _invalid_token(f": encoded start key empty (version {TOKEN_VERSION})")
    key = start if start.startswith("/") else "/" + start
    if posixpath.normpath(key) != key.rstrip("/") and posixpath.normpath(key) + "/" != key:
        raise _invalid_token(f": {start}")
    return revision, key[1:]


def _token_text(token: str) -> bytes:
    """The text of a token: base64 for URLs, without padding. Line breaks are ignored."""
    plain = token.translate(_LINE_BREAKS)
    valid = _ALPHABET.match(plain)
    end = valid.end() if valid else 0
    if end == len(plain) and end % 4 != 1:
        return base64.urlsafe_b64decode(plain + "=" * (-end % 4))
    at = end if end < len(plain) else end - 1
    places = [index for index, char in enumerate(token) if char not in "\r\n"]
    raise DecodeError(f"illegal base64 data at input byte {len(token[: places[at]].encode())}")


def _token_fields(value: Any) -> tuple[str, int, str]:
    """Version, revision and start key of a token's text."""
    if value is None:
        value = {}
    if not isinstance(value, dict):
        raise DecodeError(
            f"json: cannot unmarshal {json_type(value)} into Go value of type storage.continueToken"
        )
    token: dict[str, Any] = {"v": "", "rv": 0, "start": ""}
    for key, part in value.items():
        name = key.lower()
        if name not in token or part is None:
            continue
        expected_type = type(token[name])
        if type(part) is not expected_type:
            word = f"number {part}" if expected_type is int and isinstance(part, float) else json_type(part)
            go_type = "int64" if expected_type is int else "string"
            where = f"Go struct field continueToken.{name} of type {go_type}"
            raise DecodeError(f"json: cannot unmarshal {word} into {where}")
        token[name] = part
    return token["v"], token["rv"], token["start"]


def _invalid_token(why: str) -> status.APIError:
    return status.bad_request(f"invalid continue token: continue key is not valid{why}")
