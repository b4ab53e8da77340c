"""Custom resources: CRDs (CustomResourceDefinitions), structural schemas, CEL rules, conversion."""
