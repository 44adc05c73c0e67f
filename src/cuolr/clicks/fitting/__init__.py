"""Click models fitted to a log: which users are behind it."""
