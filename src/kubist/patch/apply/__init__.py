"""Server-side apply and managedFields, in layers that only look down.

`paths` and `sets` (where), `typed` (of which type), `fields`, `whole`, `compare`, `merge` (values with their types),
`managers`, `created` and `ownership` (who), and on top what the verbs call: `update_managed_fields` and `apply`.
"""

from kubist.patch.apply.requests import apply, restore_times, update_managed_fields
from kubist.patch.apply.versions import Convert

__all__ = ["Convert", "apply", "restore_times", "update_managed_fields"]
