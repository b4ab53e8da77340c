"""Running servers: event loop and signals of a process, files of a data directory, kubeconfigs."""
