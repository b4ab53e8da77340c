"""One compiled CEL rule: rule and message programs, their estimated costs, and compile errors."""

from __future__ import annotations

from typing import Any

from kubist.api.crd import field_path
from kubist.api.crd.rules.schema_types import SchemaType
from kubist.model import cel

Props = dict[str, Any]


class CompiledRule:
    """A rule of `x-kubernetes-validations`. `program` is None if the rule does not compile; `error` then
    holds the reason."""

    __slots__ = (
        "cost",
        "error",
        "field",
        "message_cost",
        "message_error",
        "message_program",
        "optional_old",
        "program",
        "reason",
        "rule",
        "uses_old",
    )

    def __init__(self, rule: Props, props: Props, schema: SchemaType) -> None:
        self.rule = rule
        self.optional_old = bool(rule.get("optionalOldSelf"))
        self.reason: str = rule.get("reason") or "FieldValueInvalid"
        self.program: cel.Program | None = None
        self.message_program: cel.Program | None = None
        self.error = self.message_error = ""
        self.cost = self.message_cost = 0
        self.uses_old = False
        self.field = ""
        old = cel.optional_of(schema.type) if self.optional_old else schema.type
        environment = cel.Environment({"self": schema.type, "oldSelf": old}, aside=True)
        if (rule.get("rule") or "").strip():
            self._compile(rule, environment, schema)
        if rule.get("fieldPath"):
            try:
                self.field = field_path.resolve(rule["fieldPath"], props)[0]
            except field_path.BadPath:
                self.field = ""

    def _compile(self, rule: Props, environment: cel.Environment, schema: SchemaType) -> None:
        program, self.error = _compiled(rule.get("rule") or "", environment, "bool", "", "cel expression")
        if program is None:
            return
        self.program = program
        self.uses_old = "oldSelf" in program.uses
        self.cost = program.cost(schema.size_of).most
        expression = rule.get("messageExpression")
        if not expression:
            return
        field = "messageExpression"
        message, self.message_error = _compiled(expression, environment, "string", f"{field} ", field)
        if message is not None:
            self.message_program = message
            self.message_cost = message.cost(schema.size_of).most

    @property
    def title(self) -> str:
        """The rule as error messages name it: `message` if set, else the expression."""
        return ((self.rule.get("message") or "") or (self.rule.get("rule") or "")).strip()


def _compiled(
    expression: str, environment: cel.Environment, result: str, prefix: str, subject: str
) -> tuple[cel.Program | None, str]:
    """The program of an expression, or None and the error if it is invalid or has the wrong result type."""
    try:
        program = cel.compile(expression, environment)
    except cel.CompileError as error:
        return None, f"{prefix}compilation failed: {error.located(expression)}"
    if program.type.kind != result:
        return None, f"{subject} must evaluate to a {result}"
    return program, ""
