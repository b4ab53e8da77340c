"""API Priority and Fairness: FlowSchemas, priority levels, seats and queues."""
