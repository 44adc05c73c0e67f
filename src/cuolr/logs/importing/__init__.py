"""Click logs from other systems, one file per source."""
