"""Software of other projects against a real Kubist server. `make ecosystem` runs these tests."""
