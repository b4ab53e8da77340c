"""What an object is: names, types and fields, encodings, patches, expressions, and versions of Kubernetes."""
