"""Objects: names, types and fields, encodings, patches, expressions, and versions of Kubernetes."""
