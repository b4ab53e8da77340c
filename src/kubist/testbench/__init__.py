"""Test bench: control over a server for tests, from Python and over HTTP below /kubist/v1/."""
