"""Admission webhooks: matching, the AdmissionReview request, and the response."""
