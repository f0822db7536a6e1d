"""What can still be read of a damaged store: found in the bytes of its files, each record verified by its own checksum, nothing written."""
