-- The set as it was written, where staging has completed it: small edits made whole, and what they imply.
ALTER TABLE change_set ADD COLUMN written TEXT;
