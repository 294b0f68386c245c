-- The call that discarded a change set: whether a discard that a crash left open has happened.
ALTER TABLE change_set ADD COLUMN discarded_by TEXT;
