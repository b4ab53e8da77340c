"""Columns of webhook configurations and admission policies."""

from __future__ import annotations

from kubist.api.tables.cells import UNSET, size
from kubist.api.tables.columns import AGE, NAME, Column, Table, number, part
from kubist.model.meta.object import Object
from kubist.model.meta.selectors import go_label_selector


def _param_kind(policy: Object) -> str:
    kind = part(policy, "spec").get("paramKind")
    return f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}" if kind is not None else UNSET


def _param_ref(binding: Object) -> str:
    ref = part(binding, "spec").get("paramRef")
    if ref is None:
        return UNSET
    if ref.get("name"):
        return f"{ref.get('namespace') or '*'}/{ref['name']}"
    return go_label_selector(ref["selector"]) if ref.get("selector") is not None else UNSET


_PARAM_KIND = Column("ParamKind", "Kind of the parameters that the policy takes.", cell=_param_kind)
_WEBHOOKS = Table(NAME, number("Webhooks", "Number of webhooks.", cell=size("webhooks")), AGE)
_BINDING = Table(
    NAME,
    Column("PolicyName", "Policy of the binding.", path="spec.policyName"),
    Column("ParamRef", "Parameters of the policy.", cell=_param_ref),
    AGE,
)
TABLES = {
    "MutatingWebhookConfiguration": _WEBHOOKS,
    "ValidatingWebhookConfiguration": _WEBHOOKS,
    "ValidatingAdmissionPolicyBinding": _BINDING,
    "MutatingAdmissionPolicyBinding": _BINDING,
    "ValidatingAdmissionPolicy": Table(
        NAME,
        number("Validations", "Number of validations.", cell=size("spec.validations")),
        _PARAM_KIND,
        AGE,
    ),
    "MutatingAdmissionPolicy": Table(
        NAME, number("Mutations", "Number of mutations.", cell=size("spec.mutations")), _PARAM_KIND, AGE
    ),
}
