"""What a kind adds to the generic verbs: defaults, preparation, validation, columns. Never sees HTTP."""
