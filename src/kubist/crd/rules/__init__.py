"""Rules in schemas (`x-kubernetes-validations`): compiled when defined, tried when objects are written."""
