-- The transactions of the hosts that share a server, of each the last one in each of its slots: a host without slots was
-- taken for dead and writes nothing, and a commit that was not answered has happened if its number is there. Hosts that
-- share a file have locks of their own and no rows here.
CREATE TABLE host_slot (
    host   TEXT    NOT NULL,
    slot   BIGINT NOT NULL,
    number BIGINT NOT NULL,
    PRIMARY KEY (host, slot)
);
