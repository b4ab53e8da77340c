"""CRDs like those of real operators: large, with CEL rules, several versions, and sample objects.

Each module has `DEFINITION` (the CRD), `SAMPLE` (a valid object), `PATCH` (a valid merge patch) and `WRONG`:
invalid merge patches with the fields of their errors.
"""
