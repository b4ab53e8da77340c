"""What all objects share: metadata, names, labels, selectors, quantities, times, Status and field errors."""
