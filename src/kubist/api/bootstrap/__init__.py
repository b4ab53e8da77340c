"""Bootstrap objects of a new cluster: roles, priorities, namespaces, the service `kubernetes`."""

from kubist.api.bootstrap.builtin import builtin
from kubist.api.bootstrap.ensure import ensure
from kubist.api.bootstrap.objects import objects

__all__ = ["builtin", "ensure", "objects"]
