"""Pod Security Standards: levels and versions, their checks, and the policy of a namespace's labels."""
