"""Store on etcd."""
