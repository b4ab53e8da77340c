"""Users, service accounts and authorization webhooks for tests."""
