"""Storage of keys, bytes and revisions: the `Store` contract, its three implementations (SQLite, remote SQLite,
etcd) and the watch cache above them."""
