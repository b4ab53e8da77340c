"""The loops of `kubist serve`."""
