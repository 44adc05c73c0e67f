"""What a policy would gain over the logging policy, estimated from a log."""
