"""Pod Security Standards: levels and versions, their checks, and the policy in a namespace's labels."""
