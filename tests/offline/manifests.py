"""Manifests that several tests use."""

from __future__ import annotations

WIDGETS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [size]
            properties:
              size: {type: integer, maximum: 9}
              color: {type: string, default: green}
            x-kubernetes-validations:
            - {rule: self.size != 5, message: five is taken}
            - {rule: self.size >= oldSelf.size, message: widgets never shrink}
"""
POLICY = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: team}
spec:
  paramKind: {apiVersion: v1, kind: ConfigMap}
  matchConstraints:
    resourceRules:
    - apiGroups: ["", apps]
      apiVersions: [v1]
      operations: [CREATE, UPDATE]
      resources: [deployments, secrets, namespaces]
  validations:
  - {expression: "params.data.label in object.metadata.?labels.orValue({})", message: every object needs a team}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: team}
spec:
  policyName: team
  validationActions: [Deny]
  paramRef: {name: policy, namespace: default, parameterNotFoundAction: Deny}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: policy, namespace: default}
data: {label: team}
"""
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: nginx
"""
