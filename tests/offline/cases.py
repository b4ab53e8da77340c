"""Tables of manifests and the server's messages about them."""

from __future__ import annotations

import textwrap
from typing import NamedTuple

from tests.offline.manifests import DEPLOYMENT, POLICY, WIDGETS


class Expected(NamedTuple):
    line: int
    severity: str
    reason: str
    field: str
    message: str


class Case(NamedTuple):
    name: str
    manifests: str
    findings: list[Expected]
    crds: str = ""
    policies: str = ""
    user: str = ""


def case(
    name: str, manifests: str, *findings: Expected, crds: str = "", policies: str = "", user: str = ""
) -> Case:
    return Case(name, textwrap.dedent(manifests).strip("\n") + "\n", list(findings), crds, policies, user)


CASES = [
    case("valid deployment", DEPLOYMENT),
    case(
        "unknown and misspelled fields",
        """
        apiVersion: v1
        kind: Pod
        metadata: {name: a}
        spec:
          containers:
          - name: c
            image: i
            imagepullPolicy: Always
          restartpolicy: Never
        """,
        Expected(
            8, "error", "UnknownField", "spec.containers[0].imagepullPolicy", 'unknown field "spec.containers'
        ),
        Expected(9, "error", "UnknownField", "spec.restartpolicy", 'unknown field "spec.restartpolicy"'),
    ),
    case(
        "duplicate key, in the second document",
        """
        # A comment.
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: a}
        ---
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: b}
        data:
          key: one
          key: two
        """,
        Expected(11, "error", "DuplicateField", "", 'line 11: key "key" already set in map'),
    ),
    case(
        "wrong type",
        """
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: a}
        spec:
          replicas: three
        """,
        Expected(5, "error", "BadRequest", "spec.replicas", "cannot unmarshal string into Go struct field"),
    ),
    case(
        "every cause of an invalid object",
        """
        apiVersion: v1
        kind: Service
        metadata: {name: UPPER}
        spec:
          ports:
          - port: 80
            name: web
          - port: 70000
            targetPort: 80
            name: other
        """,
        Expected(3, "error", "FieldValueInvalid", "metadata.name", 'Invalid value: "UPPER"'),
        Expected(
            8, "error", "FieldValueInvalid", "spec.ports[1].port", "must be between 1 and 65535, inclusive"
        ),
    ),
    case(
        "unknown field and invalid value of one object",
        """
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: UPPER}
        date: {}
        """,
        Expected(3, "error", "FieldValueInvalid", "metadata.name", "a lowercase RFC 1123 subdomain"),
        Expected(4, "error", "UnknownField", "date", 'unknown field "date"'),
    ),
    case(
        "required field has the line of the nearest field",
        """
        apiVersion: batch/v1
        kind: CronJob
        metadata: {name: a}
        spec:
          jobTemplate:
            spec:
              template:
                spec:
                  restartPolicy: Never
                  containers:
                  - name: c
                    image: i
        """,
        Expected(4, "error", "FieldValueRequired", "spec.schedule", "Required value"),
    ),
    case(
        "items of a List",
        """
        apiVersion: v1
        kind: List
        items:
        - apiVersion: v1
          kind: ConfigMap
          metadata: {name: a}
        - apiVersion: v1
          kind: Secret
          metadata: {name: b}
          type: [wrong]
        """,
        Expected(
            10, "error", "BadRequest", "type", "cannot unmarshal array into Go struct field Secret.type"
        ),
    ),
    case(
        "kind that nobody knows",
        "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}",
        Expected(
            2,
            "error",
            "UnknownKind",
            "",
            'no kind "Widget" is registered for version "example.com/v1"; is a CRD',
        ),
    ),
    case(
        "version that is not served",
        "apiVersion: extensions/v1beta1\nkind: Ingress\nmetadata: {name: a}",
        Expected(2, "error", "UnknownKind", "", 'did you mean "networking.k8s.io/v1 Ingress"?'),
    ),
    case(
        "object without kind",
        "apiVersion: v1\nmetadata: {name: a}",
        Expected(1, "error", "UnknownKind", "", "the object has no kind"),
    ),
    case(
        "document that is no object",
        "- a\n- b",
        Expected(1, "error", "NotAnObject", "", "the document is a list"),
    ),
    case(
        "malformed YAML spoils one document only",
        """
        kind: [
        ---
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: a, nam: b}
        """,
        Expected(1, "error", "Malformed", "", "not a YAML document: yaml: "),
        Expected(5, "error", "UnknownField", "metadata.nam", 'unknown field "metadata.nam"'),
    ),
    case(
        "object that is defined twice",
        """
        {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
        ---
        {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: default}}
        """,
        Expected(3, "error", "Duplicate", "", "the object is already defined in <text>:1"),
    ),
    case(
        "CRD and its objects in any order",
        "{apiVersion: example.com/v1, kind: Widget, metadata: {name: a}, spec: {size: 1}}\n---" + WIDGETS,
    ),
    case(
        "schema and CEL rule of a CRD",
        """
        apiVersion: example.com/v1
        kind: Widget
        metadata: {name: a}
        spec:
          size: 5
        ---
        apiVersion: example.com/v1
        kind: Widget
        metadata: {name: b}
        spec:
          size: 10
        """,
        Expected(4, "error", "FieldValueInvalid", "spec", "five is taken"),
        Expected(11, "error", "FieldValueInvalid", "spec.size", "should be less than or equal to 9"),
        crds=WIDGETS,
    ),
    case(
        "malformed rule in a CRD",
        WIDGETS.replace("self.size != 5", "self.size !="),
        Expected(
            23,
            "error",
            "FieldValueInvalid",
            "spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule",
            "compilation failed",
        ),
    ),
    case(
        "policy with a parameter",
        """
        apiVersion: v1
        kind: Secret
        metadata: {name: a}
        ---
        apiVersion: v1
        kind: Secret
        metadata: {name: b, labels: {team: x}}
        ---
        apiVersion: v1
        kind: Namespace
        metadata: {name: shop}
        """,
        Expected(
            1,
            "error",
            "Invalid",
            "",
            "ValidatingAdmissionPolicy 'team' with binding 'team' denied request: every",
        ),
        Expected(9, "error", "Invalid", "", 'namespaces "shop" is forbidden: ValidatingAdmissionPolicy'),
        policies=POLICY,
    ),
    case(
        "CRDs that claim one kind",
        WIDGETS + "---" + WIDGETS.replace("widgets", "gadgets"),
        Expected(26, "error", "ListKindConflict", "", '"WidgetList" is already in use'),
    ),
    case(
        "PodSecurity of the namespace, for pods and for pods of workloads",
        """
        apiVersion: v1
        kind: Namespace
        metadata: {name: shop, labels: {pod-security.kubernetes.io/enforce: baseline}}
        ---
        apiVersion: v1
        kind: Pod
        metadata: {name: a, namespace: shop}
        spec:
          hostNetwork: true
          containers: [{name: c, image: i}]
        ---
        apiVersion: apps/v1
        kind: DaemonSet
        metadata: {name: d, namespace: shop}
        spec:
          selector: {matchLabels: {app: d}}
          template:
            metadata: {labels: {app: d}}
            spec:
              hostPID: true
              containers: [{name: c, image: i}]
        """,
        Expected(
            5, "error", "Forbidden", "", 'pods "a" is forbidden: violates PodSecurity "baseline:latest": host'
        ),
        Expected(
            12, "warning", "Warning", "", 'would violate PodSecurity "baseline:latest": host namespaces'
        ),
        Expected(17, "error", "Forbidden", "spec.template", 'pods "d" is forbidden: violates PodSecurity'),
    ),
    case(
        "service account that does not exist",
        """
        apiVersion: v1
        kind: Pod
        metadata: {name: a}
        spec: {serviceAccountName: missing, containers: [{name: c, image: i}]}
        """,
        Expected(1, "error", "Forbidden", "", "error looking up service account default/missing"),
    ),
    case(
        "service account of another manifest",
        """
        apiVersion: v1
        kind: Pod
        metadata: {name: a, namespace: shop}
        spec: {serviceAccountName: mine, containers: [{name: c, image: i}]}
        ---
        {apiVersion: v1, kind: ServiceAccount, metadata: {name: mine, namespace: shop}}
        ---
        {apiVersion: v1, kind: ServiceAccount, metadata: {name: default, namespace: shop}}
        """,
    ),
    case(
        "node port of two services",
        """
        apiVersion: v1
        kind: Service
        metadata: {name: a}
        spec: {type: NodePort, ports: [{port: 1, nodePort: 30001}]}
        ---
        apiVersion: v1
        kind: Service
        metadata: {name: b}
        spec: {type: NodePort, ports: [{port: 1, nodePort: 30001}]}
        """,
        Expected(
            9, "error", "FieldValueInvalid", "spec.ports[0].nodePort", "provided port is already allocated"
        ),
    ),
    case(
        "warning of the server",
        """
        apiVersion: v1
        kind: Pod
        metadata: {name: a}
        spec:
          containers:
          - name: c
            image: i
            env:
            - {name: A, value: x}
            - {name: A, value: z}
        """,
        Expected(10, "warning", "Warning", "spec.containers[0].env[1]", "hides previous definition"),
    ),
    case(
        "deprecated API version",
        "{apiVersion: v1, kind: Endpoints, metadata: {name: a}}",
        Expected(
            1, "warning", "Warning", "", "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1"
        ),
    ),
    case(
        "RBAC with the roles of the manifests",
        """
        apiVersion: rbac.authorization.k8s.io/v1
        kind: RoleBinding
        metadata: {name: alice, namespace: shop}
        roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
        subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: alice}]
        ---
        {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}}
        ---
        {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: other}}
        """,
        Expected(
            1, "error", "Forbidden", "", 'User "alice" cannot create resource "rolebindings" in API group'
        ),
        Expected(9, "error", "Forbidden", "", 'in API group "" in the namespace "other"'),
        user="alice",
    ),
    case(
        "conversion webhook is not called",
        WIDGETS.replace(
            "  scope: Namespaced",
            "  scope: Namespaced\n"
            "  conversion:\n"
            "    strategy: Webhook\n"
            "    webhook: {conversionReviewVersions: [v1], clientConfig: {url: 'https://127.0.0.1:1/'}}",
        )
        + "---\n{apiVersion: example.com/v1, kind: Widget, metadata: {name: a}, spec: {size: 1}}",
        Expected(
            8, "warning", "NotConverted", "spec.conversion.strategy", "the conversion webhook is not called"
        ),
    ),
]
