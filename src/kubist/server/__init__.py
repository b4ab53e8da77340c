"""Builds servers and runs them: in a process, in a program, with workers, with many clusters."""
