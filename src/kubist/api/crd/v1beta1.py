"""CRDs in apiextensions.k8s.io/v1beta1, the version that kube-apiserver stores in etcd.

v1beta1 holds fields that all versions share once, at the top of the spec. `to_v1` copies them into each
version.
"""

from __future__ import annotations

from kubist.model.meta.object import Object

COMMON = {
    "subresources": "subresources",
    "validation": "schema",
    "additionalPrinterColumns": "additionalPrinterColumns",
    "selectableFields": "selectableFields",
}


def to_v1(obj: Object, api_version: str) -> Object:
    spec: Object = dict(obj["spec"])
    first = spec.pop("version", "")
    versions = [dict(version) for version in spec.get("versions") or ()]
    if not versions and first:
        versions = [{"name": first, "served": True, "storage": True}]
    for above, within in COMMON.items():
        common = spec.pop(above, None)
        for version in versions:
            if common is not None:
                version[within] = common
    for version in versions:
        if "additionalPrinterColumns" in version:
            version["additionalPrinterColumns"] = [
                _column(each) for each in version["additionalPrinterColumns"]
            ]
    spec["versions"] = versions
    if spec.get("conversion"):
        spec["conversion"] = _conversion(dict(spec["conversion"]))
    if not spec.get("preserveUnknownFields", True):
        del spec["preserveUnknownFields"]
    else:
        spec["preserveUnknownFields"] = True
    return {**obj, "apiVersion": api_version, "spec": spec}


def _column(column: Object) -> Object:
    return {"jsonPath" if name == "JSONPath" else name: value for name, value in column.items()}


def _conversion(conversion: Object) -> Object:
    config = conversion.pop("webhookClientConfig", None)
    reviews = conversion.pop("conversionReviewVersions", None)
    if config is not None or reviews is not None:
        webhook = {"clientConfig": config, "conversionReviewVersions": reviews}
        conversion["webhook"] = {name: value for name, value in webhook.items() if value is not None}
    return conversion
