"""Tables: the columns of every kind, a module per API group, and the Table representation made of them."""
