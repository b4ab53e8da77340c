"""Control loops and simulated nodes, which act by themselves."""
