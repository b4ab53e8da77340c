"""The built-in admission plugins: one module a plugin, named as the flag names it, in lower case."""
