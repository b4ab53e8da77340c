"""Built-in admission plugins: one module per plugin, with the plugin's name in lower case."""
