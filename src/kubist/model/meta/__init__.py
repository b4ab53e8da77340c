"""Common parts of all objects: metadata, names, labels, selectors, quantities, times, Status and field errors."""
