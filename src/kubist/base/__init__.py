"""Ground floor: HTTP, JSON text, clocks, caches, files. It knows nothing of Kubernetes."""
