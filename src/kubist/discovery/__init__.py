"""What the server says about itself: /api, /apis, /openapi, /version, health."""
