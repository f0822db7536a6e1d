"""The tables of a session file (durable.md, section 2), readable with the sqlite3 shell.

Each record table has the columns that queries need, the record as JSON text, and a hash over the whole row: SQLite's own check does
not notice a changed letter. `record_ids` holds every id ever used, whatever for (rule ST-3). Counters live in one row.
"""

from __future__ import annotations

APPLICATION_ID = 0x70694474  # "piDt": tells a session file from another program's SQLite file

TABLES = frozenset(
    {"durable_metadata", "record_ids", "conversations", "entries", "tasks", "submissions", "documents", "document_revisions"},
)

CREATE = """
CREATE TABLE durable_metadata (
    singleton INTEGER PRIMARY KEY CHECK (singleton = 1),
    next_id INTEGER NOT NULL,
    next_seq INTEGER NOT NULL,
    schema_version INTEGER NOT NULL,
    last_at_ms INTEGER,
    hash BLOB NOT NULL
) STRICT;

CREATE TABLE record_ids (
    id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('conversation', 'entry', 'task', 'submission', 'document'))
) STRICT;

CREATE TABLE conversations (
    id INTEGER PRIMARY KEY,
    parent INTEGER REFERENCES conversations (id) DEFERRABLE INITIALLY DEFERRED,
    owner INTEGER REFERENCES tasks (id) DEFERRABLE INITIALLY DEFERRED,
    record TEXT NOT NULL,
    hash BLOB NOT NULL
) STRICT;
CREATE INDEX conversations_by_parent ON conversations (parent, id) WHERE parent IS NOT NULL;
CREATE INDEX conversations_by_owner ON conversations (owner, id) WHERE owner IS NOT NULL;

CREATE TABLE entries (
    id INTEGER PRIMARY KEY,
    conversation_id INTEGER NOT NULL REFERENCES conversations (id) DEFERRABLE INITIALLY DEFERRED,
    commit_seq INTEGER NOT NULL,
    kind TEXT NOT NULL,
    head INTEGER,
    record TEXT NOT NULL,
    hash BLOB NOT NULL
) STRICT;
CREATE INDEX entries_by_conversation ON entries (conversation_id, id);
CREATE INDEX entries_with_head ON entries (conversation_id, id) WHERE head IS NOT NULL;

CREATE TABLE tasks (
    id INTEGER PRIMARY KEY,
    conversation_id INTEGER NOT NULL REFERENCES conversations (id) DEFERRABLE INITIALLY DEFERRED,
    owner INTEGER REFERENCES tasks (id) DEFERRABLE INITIALLY DEFERRED,
    kind TEXT NOT NULL,
    status TEXT NOT NULL,
    record TEXT NOT NULL,
    hash BLOB NOT NULL
) STRICT;
CREATE INDEX tasks_by_conversation ON tasks (conversation_id, id);
CREATE INDEX tasks_by_status ON tasks (status, id);
CREATE INDEX tasks_by_kind ON tasks (kind, id);
CREATE INDEX tasks_by_owner ON tasks (owner, id) WHERE owner IS NOT NULL;

CREATE TABLE submissions (
    id INTEGER PRIMARY KEY,
    conversation_id INTEGER NOT NULL REFERENCES conversations (id) DEFERRABLE INITIALLY DEFERRED,
    request_id TEXT,
    status TEXT NOT NULL,
    record TEXT NOT NULL,
    hash BLOB NOT NULL,
    UNIQUE (conversation_id, request_id)
) STRICT;
CREATE INDEX submissions_by_conversation ON submissions (conversation_id, id);
CREATE INDEX submissions_by_status ON submissions (status, id);

CREATE TABLE documents (
    id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    scope TEXT NOT NULL,
    scope_id INTEGER,
    retired_seq INTEGER,
    record TEXT NOT NULL,
    hash BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX documents_live ON documents (scope, ifnull(scope_id, 0), kind) WHERE retired_seq IS NULL;

CREATE TABLE document_revisions (
    document_id INTEGER NOT NULL REFERENCES documents (id) DEFERRABLE INITIALLY DEFERRED,
    seq INTEGER NOT NULL,
    type TEXT NOT NULL CHECK (type IN ('base', 'delta')),
    record TEXT NOT NULL,
    hash BLOB NOT NULL,
    PRIMARY KEY (document_id, seq)
) STRICT;
"""
