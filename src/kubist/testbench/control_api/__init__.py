"""Control API: requests, routes and their OpenAPI document."""
