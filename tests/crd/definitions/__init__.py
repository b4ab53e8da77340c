"""Definitions as operators bring them along: large, with rules, several versions, and samples of their objects.

Each module has a `DEFINITION`, a `SAMPLE` of its objects, a `PATCH` that is welcome, and `WRONG`: merge patches
that are refused, with the fields they are refused for.
"""
