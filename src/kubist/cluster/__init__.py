"""What acts by itself: control loops and simulated nodes."""
