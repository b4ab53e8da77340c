"""Running servers: the event loop and signals of a process, the files of a data directory, kubeconfigs."""
