"""Pod Security Standards: levels and versions, what each forbids, and what a namespace's labels ask for."""
