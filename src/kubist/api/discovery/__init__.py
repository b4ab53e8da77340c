"""Discovery, OpenAPI, version, health and metrics endpoints."""
