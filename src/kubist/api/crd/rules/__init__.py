"""CEL rules in CRD schemas (`x-kubernetes-validations`): compiled with the CRD, evaluated on each object write."""
