"""Resource quota: usage of each kind of object, scopes, and the accounting."""
