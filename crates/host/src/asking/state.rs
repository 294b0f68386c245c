//! The states of a call that a person is asked about. Nothing is done here: [`step`] returns the next state and the next action, and
//! `AskedCall` performs it.

/// Where the call stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Its ask is open, as far as is known.
    Asked,
    /// A person agreed. The preview has not been compared with the one that they saw. `written`: the answer is in the database.
    Agreed { written: bool },
    /// They agreed to what the call does. It needs a run slot.
    Allowed { written: bool },
    /// It runs, it waits in the queue, or it is refused.
    Ended,
}

/// What a person says of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerKind {
    Yes,
    /// Yes, with other arguments.
    Edited,
    No,
}

/// The ask, as its row has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AskStatus {
    Open,
    Answered(AnswerKind),
    Expired,
    Withdrawn,
    /// An identical call has already used the answer.
    Used,
}

/// How the preview of now compares with the one that was shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PreviewCheck {
    Same,
    Changed,
    /// Its tool could not say.
    Unknown,
}

/// What has happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AskEvent {
    /// The row was read: at first, or because somebody answered elsewhere before this call could write.
    Read(AskStatus),
    /// A person has answered where this call shows its ask. It is written nowhere yet.
    AnsweredHere(AnswerKind),
    /// That answer is in the row now.
    Written(AnswerKind),
    Looked(PreviewCheck),
    /// The arguments that the person typed are those of a call that may be made.
    EditAccepted,
    EditRefused,
    /// The call has its run slot.
    SlotTaken,
    /// There is none at once.
    NoSlot,
    /// The rows of the answer's use and of the call's start are committed.
    Started,
}

/// Why a call is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    Denied,
    Expired,
    Withdrawn,
    Used,
    /// What the call would do has changed since it was allowed.
    Changed,
    /// Its tool could not say what it would do.
    Unknown,
    /// The arguments that the person typed may not be used.
    Edit,
    /// An event that this state cannot receive: a bug in the host.
    Impossible,
}

/// The next action. All but `Run`, `TellPending` and `Refuse` produce an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// Look at what the call would do now.
    Look,
    /// Check the arguments that the person typed.
    Check,
    /// Write the answer down.
    Write,
    /// Take a run slot, if one is free at once.
    FindSlot,
    /// Wait for a run slot.
    AwaitSlot,
    /// Write down that the call starts and that it uses the answer; the answer itself, too, if the row does not have it.
    Start {
        written: bool,
    },
    Run,
    /// Tell the caller how to wait.
    TellPending,
    /// `uses_answer`: consume the person's answer, so that a repeated call asks again.
    Refuse {
        why: Refusal,
        uses_answer: bool,
    },
}

/// The next state and the next action.
pub(crate) fn step(state: State, event: AskEvent) -> (State, Action) {
    let refuse = |why, uses_answer| (State::Ended, Action::Refuse { why, uses_answer });
    match (state, event) {
        (State::Asked | State::Allowed { written: false }, AskEvent::Read(row)) => match row {
            AskStatus::Open => (State::Ended, Action::TellPending),
            AskStatus::Answered(said) => answered(said),
            AskStatus::Expired => refuse(Refusal::Expired, false),
            AskStatus::Withdrawn => refuse(Refusal::Withdrawn, false),
            AskStatus::Used => refuse(Refusal::Used, false),
        },
        (State::Agreed { written: false }, AskEvent::Read(row)) => step(State::Asked, AskEvent::Read(row)),

        (State::Asked, AskEvent::AnsweredHere(AnswerKind::Yes)) => (State::Agreed { written: false }, Action::Look),
        (State::Asked, AskEvent::AnsweredHere(AnswerKind::Edited | AnswerKind::No)) => (State::Asked, Action::Write),
        (State::Asked | State::Agreed { written: false }, AskEvent::Written(said)) => answered(said),

        (State::Agreed { written }, AskEvent::Looked(PreviewCheck::Same)) => {
            (State::Allowed { written }, Action::FindSlot)
        }
        // Record the answer even if the call is then refused.
        (State::Agreed { written: false }, AskEvent::Looked(_)) => (state, Action::Write),
        (State::Agreed { written: true }, AskEvent::Looked(PreviewCheck::Changed)) => refuse(Refusal::Changed, true),
        (State::Agreed { written: true }, AskEvent::Looked(PreviewCheck::Unknown)) => refuse(Refusal::Unknown, false),
        (State::Agreed { written: true }, AskEvent::EditAccepted) => {
            (State::Allowed { written: true }, Action::FindSlot)
        }
        (State::Agreed { written: true }, AskEvent::EditRefused) => refuse(Refusal::Edit, true),

        (State::Allowed { written }, AskEvent::SlotTaken) => (state, Action::Start { written }),
        // Record the answer now; the wait for a slot may be long.
        (State::Allowed { written: false }, AskEvent::NoSlot) => (state, Action::Write),
        (State::Allowed { written: true }, AskEvent::NoSlot) => (state, Action::AwaitSlot),
        (State::Allowed { written: false }, AskEvent::Written(_)) => {
            (State::Allowed { written: true }, Action::AwaitSlot)
        }
        (State::Allowed { .. }, AskEvent::Started) => (State::Ended, Action::Run),

        _ => refuse(Refusal::Impossible, false),
    }
}

/// The row of the ask has an answer.
fn answered(said: AnswerKind) -> (State, Action) {
    match said {
        AnswerKind::Yes => (State::Agreed { written: true }, Action::Look),
        AnswerKind::Edited => (State::Agreed { written: true }, Action::Check),
        AnswerKind::No => (State::Ended, Action::Refuse { why: Refusal::Denied, uses_answer: true }),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const ANSWERS: [AnswerKind; 3] = [AnswerKind::Yes, AnswerKind::Edited, AnswerKind::No];

    fn rows() -> Vec<AskEvent> {
        let plain = [AskStatus::Open, AskStatus::Expired, AskStatus::Withdrawn, AskStatus::Used];
        plain.into_iter().chain(ANSWERS.map(AskStatus::Answered)).map(AskEvent::Read).collect()
    }

    /// The events that each action may produce; `AskedCall` must keep to this. `heard`: the answer given where the call shows its ask.
    fn outcomes(todo: Action, heard: Option<AnswerKind>) -> Vec<AskEvent> {
        match todo {
            Action::Look => {
                [PreviewCheck::Same, PreviewCheck::Changed, PreviewCheck::Unknown].map(AskEvent::Looked).to_vec()
            }
            Action::Check => vec![AskEvent::EditAccepted, AskEvent::EditRefused],
            Action::Write => rows().into_iter().chain(heard.map(AskEvent::Written)).collect(),
            Action::FindSlot => vec![AskEvent::SlotTaken, AskEvent::NoSlot],
            Action::AwaitSlot => vec![AskEvent::SlotTaken],
            Action::Start { written: true } => vec![AskEvent::Started],
            // Somebody else may have answered meanwhile.
            Action::Start { written: false } => rows().into_iter().chain([AskEvent::Started]).collect(),
            Action::Run | Action::TellPending | Action::Refuse { .. } => Vec::new(),
        }
    }

    /// A way that a call takes, as far as it is known.
    #[derive(Clone)]
    struct Way {
        state: State,
        /// What the person said where the call shows its ask.
        heard: Option<AnswerKind>,
        events: Vec<AskEvent>,
        done: Vec<Action>,
    }

    /// Each way that a call can take, as the events on it and what it ends with. It ends before an action would be done a third time.
    fn ways() -> Vec<(Vec<AskEvent>, Action)> {
        let asked = |heard| Way { state: State::Asked, heard, events: Vec::new(), done: Vec::new() };
        let mut ended = Vec::new();
        let mut open: Vec<(Way, AskEvent)> = rows().into_iter().map(|row| (asked(None), row)).collect();
        open.extend(ANSWERS.map(|said| (asked(Some(said)), AskEvent::AnsweredHere(said))));
        while let Some((mut way, event)) = open.pop() {
            let (state, todo) = step(way.state, event);
            way.state = state;
            way.events.push(event);
            way.done.push(todo);
            let outcomes = outcomes(todo, way.heard);
            if outcomes.is_empty() {
                ended.push((way.events, todo));
            } else if way.done.iter().filter(|earlier| **earlier == todo).count() < 3 {
                open.extend(outcomes.into_iter().map(|event| (way.clone(), event)));
            }
        }
        ended
    }

    /// The last thing that was said, where it is a yes; edited arguments count as one.
    fn agreed(events: &[AskEvent]) -> bool {
        let said = events.iter().rev().find_map(|event| match event {
            AskEvent::Read(AskStatus::Answered(said)) | AskEvent::AnsweredHere(said) | AskEvent::Written(said) => {
                Some(*said != AnswerKind::No)
            }
            AskEvent::Read(_) => Some(false),
            _ => None,
        });
        said == Some(true)
    }

    #[test]
    fn a_call_runs_only_after_a_yes_to_what_it_does_and_once_that_is_written() {
        let ways = ways();
        let running: Vec<_> = ways.iter().filter(|(_, todo)| *todo == Action::Run).collect();
        assert!(running.len() > 10, "{} ways lead there", running.len());
        for (events, _) in running {
            assert!(agreed(events), "{events:?}");
            // What was looked at is looked at after the answer that counts.
            let answer =
                events.iter().rposition(|event| matches!(event, AskEvent::Read(_) | AskEvent::AnsweredHere(_)));
            let after = &events[answer.unwrap_or_default()..];
            let fits = after.iter().any(|e| matches!(e, AskEvent::Looked(PreviewCheck::Same) | AskEvent::EditAccepted));
            assert!(fits, "{events:?}");
            assert!(!after.contains(&AskEvent::EditRefused), "{events:?}");
            assert!(events.contains(&AskEvent::SlotTaken) && events.last() == Some(&AskEvent::Started), "{events:?}");
        }
    }

    #[test]
    fn nothing_that_can_happen_confuses_it_and_nothing_else_lets_a_call_run() {
        for (events, todo) in ways() {
            assert!(!matches!(todo, Action::Refuse { why: Refusal::Impossible, .. }), "{events:?}");
        }
        let states = [State::Asked, State::Ended]
            .into_iter()
            .chain([true, false].map(|written| State::Agreed { written }))
            .chain([true, false].map(|written| State::Allowed { written }));
        for state in states {
            let runs = step(state, AskEvent::Started).1 == Action::Run;
            assert_eq!(runs, matches!(state, State::Allowed { .. }), "{state:?}");
        }
    }

    #[test]
    fn an_answer_is_written_down_whatever_comes_of_the_call() {
        for (events, todo) in ways() {
            // Unless the ask was read again meanwhile: it was answered elsewhere, or has expired.
            let heard = matches!(events.first(), Some(AskEvent::AnsweredHere(_)));
            if heard && !events.iter().any(|event| matches!(event, AskEvent::Read(_))) {
                let written = events.iter().any(|event| matches!(event, AskEvent::Written(_) | AskEvent::Started));
                assert!(written, "{events:?} ends in {todo:?}");
            }
        }
    }

    #[test]
    fn what_lets_nothing_run_is_used_up_where_a_person_has_said_it() {
        let uses_answer: BTreeSet<_> = ways()
            .into_iter()
            .filter_map(|(_, todo)| match todo {
                Action::Refuse { why, uses_answer } => Some((format!("{why:?}"), uses_answer)),
                _ => None,
            })
            .collect();
        let expected = [
            ("Changed", true),
            ("Denied", true),
            ("Edit", true),
            ("Expired", false),
            ("Unknown", false),
            ("Used", false),
            ("Withdrawn", false),
        ];
        assert_eq!(uses_answer, expected.map(|(why, uses_answer)| (why.to_owned(), uses_answer)).into());
    }

    /// A person who has answered does not wait until the calls before theirs have run.
    #[test]
    fn an_answer_does_not_wait_for_a_place() {
        let (state, todo) = step(State::Allowed { written: false }, AskEvent::NoSlot);
        assert_eq!(todo, Action::Write);
        assert_eq!(
            step(state, AskEvent::Written(AnswerKind::Yes)),
            (State::Allowed { written: true }, Action::AwaitSlot)
        );
    }
}
