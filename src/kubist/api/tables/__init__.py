"""Tables: columns of every kind, with one module per API group, and the Table representation."""
