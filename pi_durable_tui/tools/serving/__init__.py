"""Programs that live longer than a call: servers that tools talk to."""
