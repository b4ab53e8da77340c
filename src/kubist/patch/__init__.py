"""Object + patch to object: JSON Patch, merge patch, strategic merge patch, server-side apply."""
