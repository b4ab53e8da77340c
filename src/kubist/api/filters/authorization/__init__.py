"""Authorization: RBAC, Node, ABAC and their configuration; the check of privilege escalation."""
