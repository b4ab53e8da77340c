"""First decoding error of a document, in the order of the text, as the reference reports it.

The decoder visits the fields of a struct in declared order, so the error that it finds may not be the first. The
reference follows the text. A value of the wrong type does not stop it: it reports the first one at the end. A type with
its own UnmarshalJSON, such as a quantity or a time, stops it at once, so its error wins over earlier ones of other
types.
"""

from __future__ import annotations

from typing import Any

from kubist.base.jsontext.complaints import Repeats
from kubist.base.jsontext.errors import DecodeError
from kubist.model.schema.decode import Mistyped, converter, go_type
from kubist.model.schema.leaves import WrongType, leaf
from kubist.model.schema.node import Field, Schema


def first_mistake(schema: Schema, value: Any, repeats: Repeats | None = None) -> DecodeError | None:
    """Error that the reference reports for a value. None if there is none. `repeats` has the objects with
    duplicate keys."""
    walk = _Walk(Repeats() if repeats is None else repeats)
    try:
        walk.visit(schema, value)
    except WrongType as error:
        return Mistyped(error)
    except DecodeError as error:
        return error
    except RecursionError:
        return None
    return walk.first


class _Walk:
    def __init__(self, repeats: Repeats) -> None:
        self.repeats = repeats
        self.first: DecodeError | None = None
        self.inside: list[tuple[str, str]] = []
        """Fields on the path to the value, with the names of their structs."""

    def visit(self, schema: Schema, value: Any) -> None:
        if schema.type == "struct" and isinstance(value, dict):
            for key, item in self.repeats.pairs(value):
                field = schema.fields.get(key)
                if field is not None:
                    self._visit_field(schema, field, item)
        elif schema.items is not None and schema.type == "map" and isinstance(value, dict):
            for _, item in self.repeats.pairs(value):
                self.visit(schema.items, item)
        elif schema.items is not None and schema.type == "list" and isinstance(value, list):
            for item in value:
                self.visit(schema.items, item)
        elif value is not None:
            self._check(schema, value)

    def _visit_field(self, schema: Schema, field: Field, item: Any) -> None:
        key = f"{field.embedded}.{field.name}" if field.embedded else field.name
        self.inside.append((key, schema.name.rpartition(".")[2]))
        self.visit(field.schema, item)
        self.inside.pop()

    def _check(self, schema: Schema, value: Any) -> None:
        convert = converter(schema) if schema.type == "struct" else leaf(schema, go_type, converter)
        try:
            convert(value, [])
        except WrongType as error:
            for key, struct in reversed(self.inside):
                error.within(key, struct)
            if error.own or schema.format.startswith("schema-or-"):
                raise
            self.first = self.first or Mistyped(error)
        except DecodeError as error:
            if schema.format != "byte":
                raise
            self.first = self.first or error
