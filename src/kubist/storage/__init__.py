"""Storage of keys, bytes and revisions: the `Store` contract, its implementations (memory, SQLite,
remote SQLite, etcd) and the watch cache above them."""
