"""Server-side apply and managedFields, in layers that import only lower layers.

`paths` and `sets` are field sets. `typed` has the types. `fields`, `whole`, `compare` and `merge` work on
values and their types. `managers`, `created` and `ownership` track the owners. The verbs call
`update_managed_fields` and `apply`.
"""

from kubist.model.patch.apply.requests import apply, own_status, restore_times, update_managed_fields
from kubist.model.patch.apply.versions import Convert

__all__ = ["Convert", "apply", "own_status", "restore_times", "update_managed_fields"]
