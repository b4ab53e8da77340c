"""Controllers of `kubist serve`."""
