"""Strategies of the built-in kinds: defaults, preparation, validation, subresources. They never see HTTP."""
