"""Rules of roles: what one rule allows, and which rules cover others."""
