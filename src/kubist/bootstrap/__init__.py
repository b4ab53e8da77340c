"""Bootstrap objects of a new cluster: roles, priorities, namespaces, the service `kubernetes`."""

from kubist.bootstrap.builtin import builtin
from kubist.bootstrap.ensure import ensure
from kubist.bootstrap.objects import objects

__all__ = ["builtin", "ensure", "objects"]
