"""The objects that a server has from its first moment: roles, priorities, namespaces, its own service."""

from kubist.bootstrap.builtin import builtin
from kubist.bootstrap.ensure import ensure
from kubist.bootstrap.objects import objects

__all__ = ["builtin", "ensure", "objects"]
