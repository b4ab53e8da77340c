"""Tables: the vocabulary of columns, and the Table representation."""
