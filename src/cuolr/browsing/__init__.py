"""What a model would change in the lists of a log, query by query, and what the log's clicks say about it."""
