"""Rules that several kinds share, each written once."""
