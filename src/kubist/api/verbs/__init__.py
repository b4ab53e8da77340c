"""One file a verb. A verb never knows a kind by name."""
