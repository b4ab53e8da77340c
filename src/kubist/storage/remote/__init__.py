"""Store of another process on this machine: client, server and protocol."""
