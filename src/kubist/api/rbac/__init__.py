"""RBAC rules: the permissions of a rule, and coverage of rules by other rules."""
