-- Whether a member may answer what people are asked: 1 yes, 0 no. NULL: as the role says, which is yes for owners and editors.
ALTER TABLE member ADD COLUMN approver INTEGER CHECK (approver IN (0, 1));
