-- Which calls a crash left unknown: looked for whenever a host starts.
CREATE INDEX audit_unknown ON audit (project_id, seq) WHERE event = 'unknown';
