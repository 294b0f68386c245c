-- Which records a call changed: what became of a call that a crash left open, and which calls the audit must know, are
-- looked up by it.
CREATE INDEX history_call ON history (project_id, call_id);
