"""Assets of envtest: executables named kube-apiserver, etcd and kubectl for test libraries of any language."""
