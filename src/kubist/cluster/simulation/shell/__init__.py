"""Simulated shell: runs the commands of containers and those of exec, attach and cp. No program is executed."""
