"""Logs, exec, attach, port-forward and proxy of simulated pods: the part of a kubelet that answers requests.

Nothing runs. Answers come from Python handlers, from annotations of the pod, or from built-in simulations that say
that the pod is simulated.
"""
