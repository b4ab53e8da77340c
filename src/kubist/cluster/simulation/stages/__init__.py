"""KWOK Stages (`kwok.x-k8s.io/v1alpha1`): rules that move objects from one state to the next.

`stage` parses a Stage and chooses one for an object, `player` watches objects and carries the Stages out.
`watcher` starts the player with the first Stage.
`jq` and `go_template` interpret the parts of these languages that Stages use; their third language is CEL.
"""
