#!/usr/bin/env python3
"""Make `src/kubist/model/schema/catalog.json`, the compact form of the built-in types that the package ships.

    tools/make_catalog.py DIRECTORY

DIRECTORY holds the facts of the API: `types.json` (OpenAPI v3 schemas), `proto.json` (message → field →
[number, type, label]) and `versions.json` (types that older versions do not have). `presence.json` beside this
script says what those do not: for every struct its fields in declared order as `name:flags=GoType@since..until`
(p pointer, o omitempty, z omitzero; the Go type only where the schema does not imply it; the versions only where
not all have the field, and one of both may be empty) and `+Struct` where a struct is embedded and JSON inlines its
fields.

Shape of the catalog: `types` and `embedded` map a name to [message, fields, embeds, extras, limits], a field being
[name, flags, number, type, attributes]; types are spelled `[T` for a list, `{T` for a map, `#name` for
another type of the catalog. `leaves` are the types that are not structs, `kinds` maps `group/version/Kind`
to a name. Limits are `since`, the version that brought the type, and `until`, the first one without it. A type that
all versions have lacks them. Those of a field are among its attributes.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from version_limits import limits

HERE = Path(__file__).parent
TARGET = HERE.parent / "src/kubist/model/schema/catalog.json"
REF = "#/components/schemas/"
META = "io.k8s.apimachinery.pkg.apis.meta.v1."
APIEXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."

LEAVES = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": ("string", "quantity"),
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": ("any", "int-or-string"),
    "io.k8s.apimachinery.pkg.runtime.RawExtension": ("any", "raw"),
    META + "Time": ("string", "time"),
    META + "MicroTime": ("string", "microtime"),
    META + "FieldsV1": ("any", "fields-v1"),
    META + "Patch": ("any", "raw"),
    APIEXTENSIONS + "JSON": ("any", "json"),
    APIEXTENSIONS + "JSONSchemaPropsOrArray": ("any", "schema-or-array"),
    APIEXTENSIONS + "JSONSchemaPropsOrBool": ("any", "schema-or-bool"),
    APIEXTENSIONS + "JSONSchemaPropsOrStringArray": ("any", "schema-or-strings"),
}

ATTRIBUTES = {
    "default": "default",
    "enum": "enum",
    "x-kubernetes-list-type": "list",
    "x-kubernetes-list-map-keys": "keys",
    "x-kubernetes-map-type": "map",
    "x-kubernetes-patch-merge-key": "merge",
    "x-kubernetes-patch-strategy": "strategy",
}


def message_of(name: str) -> str:
    return name.replace("io.k8s.", "k8s.io.", 1).replace("-", "_")


def squeeze(name: str) -> str:
    """Field names of JSON and of protobuf differ in case and punctuation only."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


class Maker:
    def __init__(self, facts: Path) -> None:
        presence = json.loads((HERE / "presence.json").read_text())
        self.presence: dict[str, list[str]] = {n: s.split() for n, s in presence["fields"].items()}
        self.types: dict[str, Any] = json.loads((facts / "types.json").read_text()) | presence["added"]
        self.messages: dict[str, Any] = json.loads((facts / "proto.json").read_text())
        self.limits = limits(facts, "schemas", set(self.types) - set(presence["added"]))
        self.out: dict[str, Any] = {"kinds": {}, "leaves": {}, "types": {}, "embedded": {}}

    def make(self) -> dict[str, Any]:
        for name, schema in sorted(self.types.items()):
            self.kinds(name, schema)
            if name in LEAVES:
                self.out["leaves"][name] = [*LEAVES[name], schema]
            else:
                record = self.struct(name, schema.get("properties", {}), schema)
                self.out["types"][name] = record + [self.limits[name]] * (name in self.limits)
        return self.out

    def kinds(self, name: str, schema: dict[str, Any]) -> None:
        for gvk in schema.get("x-kubernetes-group-version-kind", ()):
            self.out["kinds"][f"{gvk['group']}/{gvk['version']}/{gvk['kind']}"] = name

    def struct(self, name: str, properties: dict[str, Any], schema: dict[str, Any]) -> list[Any]:
        message = self.messages.get(message_of(name))
        numbers = {squeeze(field): spec for field, spec in (message or {}).items()}
        embeds: list[list[Any]] = []
        fields = self.fields(name, "", properties, set(schema.get("required", ())), numbers, embeds)
        known = {"properties", "required", "type"}
        extras = {key: value for key, value in schema.items() if key not in known}
        return [message_of(name) if message is not None else "", fields, embeds, extras]

    def fields(
        self,
        name: str,
        via: str,
        properties: dict[str, Any],
        required: set[str],
        numbers: dict[str, Any],
        embeds: list[list[Any]],
    ) -> list[list[Any]]:
        fields: list[list[Any]] = []
        for entry in self.presence[name]:
            if entry.startswith("+"):
                go = entry[1:]
                inner = META + go if go == "TypeMeta" else f"{name.rpartition('.')[0]}.{go}"
                path = f"{via}.{go}" if via else go
                inlined = self.fields(inner, path, properties, required, {}, [])
                if go != "TypeMeta":
                    number = next((n for n, type_, _ in numbers.values() if type_ == go), 0)
                    embeds.append([go, number, inner])
                    self.embed(inner, properties)
                fields += inlined
                continue
            field, _, rest = entry.partition(":")
            rest, _, versions = rest.partition("@")
            flags, _, go = rest.partition("=")
            since, _, until = versions.partition("..")
            if until and field not in properties:
                continue
            number, type_, _ = numbers.get(squeeze(field), (0, "", ""))
            attributes = self.attributes(properties[field])
            if go:
                attributes["go"] = go
            attributes |= {key: value for key, value in (("since", since), ("until", until)) if value}
            if via:
                attributes["via"] = via
            value = self.type(properties[field], attributes, type_, name)
            flags += "r" * (field in required)
            fields.append([field, flags, number, value] + ([attributes] if attributes else []))
        return fields

    def embed(self, name: str, properties: dict[str, Any]) -> None:
        """A struct that JSON inlines is a separate message in protobuf."""
        if name not in self.types and name not in self.out["embedded"]:
            self.out["embedded"][name] = self.struct(name, properties, {})

    def attributes(self, schema: dict[str, Any]) -> dict[str, Any]:
        known = {"type", "format", "allOf", "$ref", "items", "additionalProperties"}
        assert set(schema) <= known | set(ATTRIBUTES), schema
        found = {short: schema[key] for key, short in ATTRIBUTES.items() if key in schema}
        for key in ("items", "additionalProperties"):
            if key in schema and (inner := self.attributes(schema[key])):
                found["items"] = inner
        return found

    def type(self, schema: dict[str, Any], attributes: dict[str, Any], proto: str, owner: str) -> str:
        if "items" in schema:
            self.wrapper(attributes, proto, owner)
            return "[" + self.type(schema["items"], {}, "", owner)
        if "additionalProperties" in schema:
            inner = attributes.get("items", {})
            value = proto.removeprefix("map<string, ").removesuffix(">") if proto.startswith("map<") else ""
            spelled = self.type(schema["additionalProperties"], inner, value, owner)
            if inner:
                attributes["items"] = inner
            return "{" + spelled
        for ref in (schema, *schema.get("allOf", ())):
            if "$ref" in ref:
                return "#" + str(ref["$ref"]).removeprefix(REF)
        match schema.get("type"), schema.get("format"):
            case "integer", width:
                return str(width)
            case "number", "double":
                return "double"
            case "string", "byte":
                return "byte"
            case "string" | "boolean" as word, None:
                return str(word)
            case None | "object", None:
                return "any"
        raise ValueError(f"unforeseen schema {schema}")

    def wrapper(self, attributes: dict[str, Any], proto: str, owner: str) -> None:
        """A named list type (ExtraValue, Verbs) is in protobuf a message around its items."""
        message = f"{message_of(owner).rpartition('.')[0]}.{proto}"
        if set(self.messages.get(message, ())) == {"items"} and message_of(owner) != message:
            spec = self.messages[message]["items"]
            if spec[2] == "repeated" and proto in ("ExtraValue", "Verbs"):
                attributes["message"] = message


def write(catalog: dict[str, Any]) -> None:
    """Writes one field per line, so that diffs of the catalog are readable."""

    def dump(value: Any) -> str:
        return json.dumps(value, separators=(",", ":"))

    def line(section: str, name: str, value: Any) -> str:
        if section not in ("types", "embedded") or not value[1]:
            return f"{dump(name)}:{dump(value)}"
        message, fields, *rest = value
        listed = ",\n ".join(map(dump, fields))
        return f"{dump(name)}:[{dump(message)},[\n {listed}\n],{','.join(map(dump, rest))}]"

    sections = (
        f'"{section}":{{\n' + ",\n".join(line(section, name, value) for name, value in rows.items()) + "\n}"
        for section, rows in catalog.items()
    )
    TARGET.write_text("{\n" + ",\n".join(sections) + "\n}\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    write(Maker(Path(sys.argv[1])).make())
