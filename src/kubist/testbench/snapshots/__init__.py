"""Named snapshots of a server."""
