"""Validates CEL rules when a CRD is written: each rule must compile and must stay within the cost limits."""

from __future__ import annotations

from typing import Any

from kubist.api.crd.rules.cost import RULE_LIMIT, SchemaCost, excess, times
from kubist.api.crd.rules.program import CompiledRule
from kubist.api.crd.rules.schematypes import schema_type
from kubist.model.meta import fields
from kubist.model.meta.fields import FieldError
from kubist.model.schema.internals import internal_form

Props = dict[str, Any]
Errors = list[FieldError]


def expression_errors(
    props: Props,
    path: str,
    cost: SchemaCost,
    uncorrelatable: str | None,
    *,
    per_expression: bool,
) -> Errors:
    """Errors of the CEL rules of one schema node. `per_expression`: each expression is checked against
    RULE_LIMIT. The costs are added to `cost.total` in any case."""
    errors: Errors = []
    schema = schema_type(props, resource=cost.resource)
    where = f"{path}.x-kubernetes-validations"
    if schema is None:
        why = (
            "internal error: failed to construct type information for x-kubernetes-validations rules: "
            "unable to convert structural schema to CEL declarations"
        )
        return [fields.internal(where, why)]
    cardinality = cost.cardinality if cost.cardinality is not None else schema.cardinality
    for index, rule in enumerate(props["x-kubernetes-validations"]):
        at = f"{where}[{index}]"
        compiled = CompiledRule(rule, props, schema)
        price = times(compiled.cost, cardinality)
        if per_expression and price > RULE_LIMIT:
            errors.append(fields.forbidden(f"{at}.rule", excess("estimated rule cost", price, RULE_LIMIT)))
        cost.total.observe(f"{at}.rule", price)
        if compiled.error:
            errors.append(
                fields.invalid(
                    f"{at}.rule", internal_form("apiextensions.ValidationRule", rule), compiled.error
                )
            )
        if compiled.message_error:
            shown = internal_form("apiextensions.ValidationRule", rule)
            errors.append(fields.invalid(f"{at}.messageExpression", shown, compiled.message_error))
        elif compiled.message_program is not None:
            if per_expression and compiled.message_cost > RULE_LIMIT:
                why = excess("estimated messageExpression cost", compiled.message_cost, RULE_LIMIT)
                errors.append(fields.forbidden(f"{at}.messageExpression", why))
            cost.total.observe(f"{at}.messageExpression", compiled.message_cost)
        if compiled.uses_old:
            if uncorrelatable is not None:
                why = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {uncorrelatable}"
                errors.append(fields.invalid(f"{at}.rule", rule["rule"], why))
        elif rule.get("optionalOldSelf") is not None:
            why = "may not be set if oldSelf is not used in rule"
            errors.append(fields.invalid(f"{at}.optionalOldSelf", rule["optionalOldSelf"], why))
    return errors
