"""Control loops and simulated nodes, which act without a client's request."""
