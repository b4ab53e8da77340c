"""Tests of the assets for envtest."""
