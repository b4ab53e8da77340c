"""Kinds of autoscaling: HorizontalPodAutoscaler."""
