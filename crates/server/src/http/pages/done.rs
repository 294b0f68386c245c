//! What a page says of what was just done by a form on it: a word that the browser brings along once, and never a text of its own.

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Done {
    Applied,
    AppliedInPart,
    Discarded,
    SidesTaken,
    TakenBack,
    Imported,
    Begun,
    PutBack,
    DeployTakenBack,
    Saved,
    Moved,
    Created,
    Forked,
    MemberAdded,
}

impl Done {
    const ALL: [Self; 14] = [
        Self::Applied,
        Self::AppliedInPart,
        Self::Discarded,
        Self::SidesTaken,
        Self::TakenBack,
        Self::Imported,
        Self::Begun,
        Self::PutBack,
        Self::DeployTakenBack,
        Self::Saved,
        Self::Moved,
        Self::Created,
        Self::Forked,
        Self::MemberAdded,
    ];

    /// As a cookie holds it.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::AppliedInPart => "applied-in-part",
            Self::Discarded => "discarded",
            Self::SidesTaken => "sides-taken",
            Self::TakenBack => "taken-back",
            Self::Imported => "imported",
            Self::Begun => "begun",
            Self::PutBack => "put-back",
            Self::DeployTakenBack => "deploy-taken-back",
            Self::Saved => "saved",
            Self::Moved => "moved",
            Self::Created => "created",
            Self::Forked => "forked",
            Self::MemberAdded => "member-added",
        }
    }

    pub(super) fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|done| done.word() == word)
    }

    pub(super) fn sentence(self) -> &'static str {
        match self {
            Self::Applied => "The change set is applied.",
            Self::AppliedInPart => "The chosen operations are applied. The others stay open.",
            Self::Discarded => "The change set is discarded. The package is as it was.",
            Self::SidesTaken => {
                "The sides are taken. Nothing is applied yet: look below at what becomes different, then apply."
            }
            Self::TakenBack => "The change is taken back.",
            Self::Imported => "The package is imported.",
            Self::Begun => "The package is there, and empty: create its first workflow.",
            Self::PutBack => "The files are as they were before the call.",
            Self::DeployTakenBack => "The deploy is taken back.",
            Self::Saved => "It is saved.",
            Self::Moved => "It has another state.",
            Self::Created => "It is created.",
            Self::Forked => "This is the new session. The one that it was forked off stays as it is.",
            Self::MemberAdded => {
                "The member is added, and signs in with a link that the operator of this server makes: `toolhost --user NAME login`."
            }
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test says by panicking what does not hold")]
mod tests {
    use super::Done;

    #[test]
    fn each_word_is_one_deed() {
        for done in Done::ALL {
            assert_eq!(Done::parse(done.word()).unwrap(), done);
        }
        assert_eq!(Done::parse("<b>"), None);
    }
}
