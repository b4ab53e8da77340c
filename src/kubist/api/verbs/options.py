"""Options of every verb, from the query or, for deletes, from the body: 400 for malformed values, 422 with all causes
for values that are not allowed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from kubist.api.request import query_values, truthy
from kubist.api.verbs.bodies import schemes
from kubist.api.verbs.bodies.body import NO_KIND
from kubist.api.verbs.resource_request import ResourceRequest
from kubist.base.jsontext import json
from kubist.base.jsontext.errors import DecodeError
from kubist.base.jsontext.quoting import quoted
from kubist.model import feature_gates
from kubist.model.codec import negotiate, protobuf, yaml
from kubist.model.meta import fields, selectors, status
from kubist.model.meta.fields import FieldError
from kubist.model.meta.object import Object
from kubist.model.meta.objectmeta import validate_field_manager
from kubist.model.schema.catalog import schema_for
from kubist.model.schema.mistakes import first_mistake
from kubist.model.schema.node import Schema
from kubist.model.schema.strict import decode_body, decode_value

T = TypeVar("T")

MATCHES = ("Exact", "NotOlderThan", "")
FIELD_VALIDATIONS = ("", "Ignore", "Strict", "Warn")


@dataclass(slots=True)
class WriteOptions:
    """Options of create, update and patch."""

    dry_run: bool
    field_manager: str
    field_validation: str
    force: bool | None = None


def read_write_options(ctx: ResourceRequest, kind: str, *, apply: bool = False) -> WriteOptions:
    """Options of a create, update or patch. They are also set in the context."""
    chosen = write_options(kind, ctx.query, ctx.request.query, apply=apply)
    ctx.dry_run = chosen.dry_run
    ctx.field_manager = chosen.field_manager
    ctx.field_validation = chosen.field_validation
    return chosen


def write_options(kind: str, query: dict[str, str], raw_query: str, *, apply: bool = False) -> WriteOptions:
    """Options of a modifying verb; `kind` is CreateOptions, UpdateOptions or PatchOptions."""
    if not query:
        if apply:
            raise _invalid(kind, [fields.required("fieldManager", "is required for apply patch")])
        return WriteOptions(False, "", "Warn")
    errors: list[FieldError] = []
    manager = query.get("fieldManager", "")
    force = truthy(query["force"]) if "force" in query else None
    if kind == "PatchOptions":
        if apply and not manager:
            errors.append(fields.required("fieldManager", "is required for apply patch"))
        elif not apply and force is not None:
            errors.append(fields.forbidden("force", "may not be specified for non-apply patch"))
    errors += validate_field_manager(manager, "fieldManager")
    errors += validate_dry_run(query_values(raw_query, "dryRun") if "dryRun" in query else [])
    validation = query.get("fieldValidation", "")
    if validation not in FIELD_VALIDATIONS:
        errors.append(fields.not_supported("fieldValidation", validation, FIELD_VALIDATIONS))
    if errors:
        raise _invalid(kind, errors)
    return WriteOptions("dryRun" in query, manager, validation or "Warn", force)


def validate_dry_run(values: Sequence[str]) -> list[FieldError]:
    if all(value == "All" for value in values):
        return []
    return [fields.not_supported("dryRun", list(values), ["All"])]


def _invalid(kind: str, errors: list[FieldError]) -> status.APIError:
    return status.invalid("meta.k8s.io", kind, "", errors)


@dataclass(slots=True)
class ListOptions:
    """Options of list, watch and deletecollection."""

    labels: selectors.LabelSelector
    fields: selectors.FieldSelector
    watch: bool
    allow_watch_bookmarks: bool
    resource_version: str
    resource_version_match: str
    timeout_seconds: int | None
    limit: int
    continue_: str
    send_initial_events: bool | None


async def _read(parse: Callable[[str], T], text: str) -> T:
    return parse(text) if len(text) < selectors.LONG else await asyncio.to_thread(parse, text)


async def list_options(query: dict[str, str]) -> ListOptions:
    """Options of a list or watch. Deprecated `/watch/` paths are checked as lists unless they set watch=1."""
    timeout = _integer(query, "timeoutSeconds")
    limit = _integer(query, "limit")
    try:
        labels = await _read(selectors.parse_label_selector, query.get("labelSelector", ""))
        chosen = await _read(selectors.parse_field_selector, query.get("fieldSelector", ""))
    except selectors.ParseError as error:
        raise status.bad_request(str(error)) from None
    watch = truthy(query.get("watch"))
    options = ListOptions(
        labels,
        chosen,
        watch,
        truthy(query.get("allowWatchBookmarks")),
        query.get("resourceVersion", ""),
        query.get("resourceVersionMatch", ""),
        timeout,
        max(limit or 0, 0),
        query.get("continue", ""),
        truthy(query["sendInitialEvents"]) if "sendInitialEvents" in query else None,
    )
    if (
        watch
        and options.send_initial_events is None
        and not options.resource_version_match
        and options.resource_version in ("", "0")
    ):
        options.send_initial_events = True
        options.resource_version_match = "NotOlderThan"
    errors = _check_watch(options) if watch else _check_list(options)
    if errors:
        raise _invalid("ListOptions", errors)
    return options


def check_initial_events(gates: Mapping[str, bool]) -> None:
    """Rejects sendInitialEvents without the feature gate WatchList."""
    if not feature_gates.enabled(gates, "WatchList"):
        why = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
        raise _invalid("ListOptions", [fields.forbidden("sendInitialEvents", why)])


def _check_list(options: ListOptions) -> list[FieldError]:
    errors = []
    match = options.resource_version_match
    if match:
        where = "resourceVersionMatch"
        if not options.resource_version:
            errors.append(fields.forbidden(where, f"{where} is forbidden unless resourceVersion is provided"))
        if options.continue_:
            errors.append(fields.forbidden(where, f"{where} is forbidden when continue is provided"))
        if match not in MATCHES:
            errors.append(fields.not_supported(where, match, MATCHES))
        if match == "Exact" and options.resource_version == "0":
            errors.append(fields.forbidden(where, f'{where} "exact" is forbidden for resourceVersion "0"'))
    if options.send_initial_events is not None:
        errors.append(fields.forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    return errors


def _check_watch(options: ListOptions) -> list[FieldError]:
    errors = []
    match = options.resource_version_match
    where = "resourceVersionMatch"
    if options.send_initial_events is not None and match != "NotOlderThan":
        errors.append(fields.forbidden(where, f"sendInitialEvents requires setting {where} to NotOlderThan"))
    if match:
        if options.send_initial_events is None:
            errors.append(
                fields.forbidden(
                    where, f"{where} is forbidden for watch unless sendInitialEvents is provided"
                )
            )
        if match != "NotOlderThan":
            errors.append(fields.not_supported(where, match, ["NotOlderThan"]))
        if options.continue_:
            errors.append(fields.forbidden(where, f"{where} is forbidden when continue is provided"))
    return errors


def _integer(query: dict[str, str], name: str) -> int | None:
    text = query.get(name)
    if text is None:
        return None
    try:
        if not text.lstrip("+-").isascii() or "_" in text or text != text.strip():
            raise ValueError
        value = int(text)
    except ValueError:
        raise status.bad_request(f"strconv.ParseInt: parsing {quoted(text)}: invalid syntax") from None
    if not -(1 << 63) <= value < 1 << 63:
        raise status.bad_request(f"strconv.ParseInt: parsing {quoted(text)}: value out of range")
    return value


@dataclass(slots=True)
class DeleteOptions:
    """Options of delete and deletecollection."""

    dry_run: bool = False
    grace_period_seconds: int | None = None
    uid: str | None = None
    resource_version: str | None = None
    propagation_policy: str = ""
    orphan_dependents: bool | None = None

    @property
    def propagation(self) -> str:
        """Propagation policy of the options, from propagationPolicy or the older orphanDependents; empty if neither is
        set."""
        if self.orphan_dependents is not None:
            return "Orphan" if self.orphan_dependents else "Background"
        return self.propagation_policy

    def to_json(self) -> dict[str, Any]:
        """Options as a DeleteOptions object."""
        obj: dict[str, Any] = {
            "dryRun": ["All"] if self.dry_run else None,
            "gracePeriodSeconds": self.grace_period_seconds,
            "orphanDependents": self.orphan_dependents,
            "propagationPolicy": self.propagation_policy or None,
            "preconditions": None,
        }
        preconditions = {"uid": self.uid, "resourceVersion": self.resource_version}
        if any(value is not None for value in preconditions.values()):
            obj["preconditions"] = {name: value for name, value in preconditions.items() if value is not None}
        return {name: value for name, value in obj.items() if value is not None}


def delete_options(body: dict[str, Any] | None, query: dict[str, str]) -> DeleteOptions:
    """DeleteOptions from a decoded body if there was one, else from the query."""
    if body is not None:
        dry_run = body.get("dryRun") or []
        preconditions = body.get("preconditions") or {}
        options = DeleteOptions(
            bool(dry_run),
            body.get("gracePeriodSeconds"),
            preconditions.get("uid"),
            preconditions.get("resourceVersion"),
            "",
            body.get("orphanDependents"),
        )
        policy = body.get("propagationPolicy")
    else:
        dry_run = [query["dryRun"]] if "dryRun" in query else []
        options = DeleteOptions(
            bool(dry_run),
            _integer(query, "gracePeriodSeconds"),
            query.get("uid") or None,
            query.get("resourceVersion") or None,
        )
        if "orphanDependents" in query:
            options.orphan_dependents = truthy(query["orphanDependents"])
        policy = query.get("propagationPolicy")
    errors = []
    if policy is not None:
        options.propagation_policy = policy
        if options.orphan_dependents is not None:
            why = "orphanDependents and deletionPropagation cannot be both set"
            errors.append(fields.invalid("propagationPolicy", policy, why))
        if policy not in ("Foreground", "Background", "Orphan"):
            supported = ["Foreground", "Background", "Orphan", "nil"]
            errors.append(fields.not_supported("propagationPolicy", policy, supported))
    errors += validate_dry_run(dry_run)
    if errors:
        raise _invalid("DeleteOptions", errors)
    return options


def read_delete_options(ctx: ResourceRequest) -> Object | None:
    """DeleteOptions of the body, in any API group; None without a body."""
    body = ctx.request.body
    if not body:
        return None
    schema = schema_for("", "v1", "DeleteOptions")
    serializer = negotiate.content_type(ctx.request.headers.get("content-type", ""))
    try:
        if serializer == negotiate.PROTOBUF:
            api_version, kind, raw = protobuf.unwrap(body)
            _check_is_delete_options(api_version, kind)
            obj: Object = protobuf.decode(schema, raw)
        else:
            obj = _decode_delete_options(schema, body, serializer)
    except DecodeError as error:
        raise status.bad_request(str(error)) from None
    return obj


def _check_is_delete_options(api_version: str, kind: str) -> None:
    """Check that the body is DeleteOptions. Every API group has that kind."""
    if kind in ("", "DeleteOptions"):
        return
    api_version = api_version if api_version not in ("", "/") else "meta.k8s.io/v1"
    group, _, version = api_version.rpartition("/")
    if not schemes.is_registered(schemes.OPTIONS, group, version, kind):
        raise DecodeError(schemes.not_registered(schemes.OPTIONS, api_version, kind))
    if kind not in ("Table", "PartialObjectMetadata", "PartialObjectMetadataList"):
        version = "v1"
    raise DecodeError(f"converting ({version}.{kind}) to (v1.DeleteOptions): unknown conversion")


def _decode_delete_options(schema: Schema, body: bytes, serializer: str) -> Object:
    if serializer == negotiate.YAML:
        value, known = yaml.parse(body).value, None
    else:
        try:
            known = json.read(body)
        except json.BeyondRange as error:
            raise first_mistake(schema, *json.parse_repeats(body, json.Spelled)) or error from None
        except DecodeError as error:
            raise DecodeError(f"{NO_KIND}: {error}") from None
        value = known[0]
    api_version, kind = json.type_meta(value)
    if api_version.count("/") > 1:
        raise DecodeError(f"unexpected GroupVersion string: {api_version}")
    if api_version[1:].endswith("/") and api_version != "meta.k8s.io/":
        raise DecodeError(f"Object 'apiVersion' is missing in '{body.decode(errors='replace')}'")
    _check_is_delete_options(api_version, kind)
    decoded = decode_value(schema, value or {}) if known is None else decode_body(schema, body, known)
    obj: Object = decoded.object
    return obj
