"""Faults: rules, the requests that they match, and what they do to requests and watches."""
