"""Protobuf message classes for the part of etcd's API (etcdserverpb, mvccpb) that the store uses.

The protobuf runtime builds the classes from a table of field numbers on import. There is no generated code.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_PACKAGE = "etcdserverpb"

_FIELDS: dict[str, dict[str, tuple[int, str]]] = {
    "KeyValue": {
        "key": (1, "bytes"),
        "create_revision": (2, "int64"),
        "mod_revision": (3, "int64"),
        "version": (4, "int64"),
        "value": (5, "bytes"),
        "lease": (6, "int64"),
    },
    "Event": {"type": (1, "int32"), "kv": (2, "KeyValue"), "prev_kv": (3, "KeyValue")},
    "ResponseHeader": {"cluster_id": (1, "uint64"), "member_id": (2, "uint64"), "revision": (3, "int64")},
    "RangeRequest": {
        "key": (1, "bytes"),
        "range_end": (2, "bytes"),
        "limit": (3, "int64"),
        "revision": (4, "int64"),
        "count_only": (9, "bool"),
    },
    "RangeResponse": {"header": (1, "ResponseHeader"), "kvs": (2, "KeyValue*"), "more": (3, "bool")},
    "PutRequest": {"key": (1, "bytes"), "value": (2, "bytes"), "lease": (3, "int64")},
    "PutResponse": {"header": (1, "ResponseHeader")},
    "DeleteRangeRequest": {"key": (1, "bytes"), "range_end": (2, "bytes")},
    "DeleteRangeResponse": {"header": (1, "ResponseHeader"), "deleted": (2, "int64")},
    "Compare": {
        "result": (1, "int32"),
        "target": (2, "int32"),
        "key": (3, "bytes"),
        "version": (4, "int64?"),
        "mod_revision": (6, "int64?"),
    },
    "RequestOp": {
        "request_range": (1, "RangeRequest"),
        "request_put": (2, "PutRequest"),
        "request_delete_range": (3, "DeleteRangeRequest"),
    },
    "ResponseOp": {
        "response_range": (1, "RangeResponse"),
        "response_put": (2, "PutResponse"),
        "response_delete_range": (3, "DeleteRangeResponse"),
    },
    "TxnRequest": {"compare": (1, "Compare*"), "success": (2, "RequestOp*"), "failure": (3, "RequestOp*")},
    "TxnResponse": {
        "header": (1, "ResponseHeader"),
        "succeeded": (2, "bool"),
        "responses": (3, "ResponseOp*"),
    },
    "CompactionRequest": {"revision": (1, "int64"), "physical": (2, "bool")},
    "CompactionResponse": {"header": (1, "ResponseHeader")},
    "LeaseGrantRequest": {"TTL": (1, "int64"), "ID": (2, "int64")},
    "LeaseGrantResponse": {"header": (1, "ResponseHeader"), "ID": (2, "int64"), "TTL": (3, "int64")},
    "WatchCreateRequest": {
        "key": (1, "bytes"),
        "range_end": (2, "bytes"),
        "start_revision": (3, "int64"),
        "progress_notify": (4, "bool"),
        "prev_kv": (6, "bool"),
        "fragment": (8, "bool"),
    },
    "WatchRequest": {"create_request": (1, "WatchCreateRequest")},
    "WatchResponse": {
        "header": (1, "ResponseHeader"),
        "watch_id": (2, "int64"),
        "created": (3, "bool"),
        "canceled": (4, "bool"),
        "compact_revision": (5, "int64"),
        "cancel_reason": (6, "string"),
        "fragment": (7, "bool"),
        "events": (11, "Event*"),
    },
}

DELETE = 1
"""`Event.type` of a deletion."""

TARGET_VERSION, TARGET_MOD = 0, 2
"""Targets of a `Compare`. Its result stays at the default, "equal"."""


def _file() -> descriptor_pb2.FileDescriptorProto:
    """File descriptor of the table. `*` marks a repeated field; `?` marks a field that is sent even if it is
    zero."""
    field_type = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="kubist/etcd.proto", package=_PACKAGE, syntax="proto3")
    for name, fields in _FIELDS.items():
        message = file.message_type.add(name=name)
        for field_name, (number, kind) in fields.items():
            field = message.field.add(name=field_name, number=number, label=field_type.LABEL_OPTIONAL)
            if kind.endswith("*"):
                field.label = field_type.LABEL_REPEATED
            elif kind.endswith("?"):
                field.proto3_optional = True
                field.oneof_index = len(message.oneof_decl)
                message.oneof_decl.add(name=f"_{field_name}")
            kind = kind.rstrip("*?")
            if kind in _FIELDS:
                field.type, field.type_name = field_type.TYPE_MESSAGE, f".{_PACKAGE}.{kind}"
            else:
                field.type = field_type.Type.Value(f"TYPE_{kind.upper()}")
    return file


_pool = descriptor_pool.DescriptorPool()
_pool.Add(_file())


def _message(name: str) -> Any:
    return message_factory.GetMessageClass(_pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))


RangeRequest = _message("RangeRequest")
RangeResponse = _message("RangeResponse")
PutRequest = _message("PutRequest")
PutResponse = _message("PutResponse")
DeleteRangeRequest = _message("DeleteRangeRequest")
Compare = _message("Compare")
RequestOp = _message("RequestOp")
TxnRequest = _message("TxnRequest")
TxnResponse = _message("TxnResponse")
CompactionRequest = _message("CompactionRequest")
CompactionResponse = _message("CompactionResponse")
LeaseGrantRequest = _message("LeaseGrantRequest")
LeaseGrantResponse = _message("LeaseGrantResponse")
WatchCreateRequest = _message("WatchCreateRequest")
WatchRequest = _message("WatchRequest")
WatchResponse = _message("WatchResponse")
