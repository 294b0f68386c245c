//! The states of a call that a person is asked about. Nothing is done here: [`step`] says what follows from what happened, and
//! `asking` does it.

/// Where the call stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Its ask is open, as far as is known.
    Asked,
    /// A person has agreed; whether that holds for the call as it is now is not known yet. `written`: the row of the ask says so.
    Heard { written: bool },
    /// They agreed to what the call does. It needs a place among the calls that run.
    Allowed { written: bool },
    /// It runs, it waits in the queue, or it is refused.
    Ended,
}

/// What a person says of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Said {
    Yes,
    /// Yes, with other arguments.
    Edited,
    No,
}

/// What the row of the ask says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Row {
    Open,
    Answered(Said),
    Expired,
    Withdrawn,
    /// Another call of the same has used the answer.
    Used,
}

/// What the call would do now, beside what it would have done when the person was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    Same,
    Changed,
    /// Its tool could not say.
    Unknown,
}

/// What has happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// The row was read: at first, or because somebody answered elsewhere before this call could write.
    Read(Row),
    /// A person has answered where this call shows its ask. It is written nowhere yet.
    Heard(Said),
    /// That answer is in the row now.
    Written(Said),
    Looked(Effect),
    /// The arguments that the person typed are those of a call that may be made, or not.
    Checked(bool),
    /// The call has its place, or there is none at once.
    Place(bool),
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
    /// Something happened that cannot: a mistake of the host's own.
    Confused,
}

/// What is to be done. Each but the last three is answered by the event that comes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Todo {
    /// Look at what the call would do now.
    Look,
    /// Check the arguments that the person typed.
    Check,
    /// Write the answer down.
    Write,
    /// Take a place among the calls that run, if one is free at once.
    FindPlace,
    /// Wait for a place.
    AwaitPlace,
    /// Write down that the call starts and that it uses the answer; the answer itself, too, if the row does not have it.
    Start {
        written: bool,
    },
    Run,
    /// Tell the caller how to wait.
    TellPending,
    /// `told`: the person's answer is used up with that, so who asks the same again asks a person again.
    Refuse {
        why: Refusal,
        told: bool,
    },
}

/// The next state, and what is to be done.
pub(crate) fn step(state: State, event: Event) -> (State, Todo) {
    let refuse = |why, told| (State::Ended, Todo::Refuse { why, told });
    match (state, event) {
        (State::Asked | State::Allowed { written: false }, Event::Read(row)) => match row {
            Row::Open => (State::Ended, Todo::TellPending),
            Row::Answered(said) => answered(said),
            Row::Expired => refuse(Refusal::Expired, false),
            Row::Withdrawn => refuse(Refusal::Withdrawn, false),
            Row::Used => refuse(Refusal::Used, false),
        },
        (State::Heard { written: false }, Event::Read(row)) => step(State::Asked, Event::Read(row)),

        (State::Asked, Event::Heard(Said::Yes)) => (State::Heard { written: false }, Todo::Look),
        (State::Asked, Event::Heard(Said::Edited | Said::No)) => (State::Asked, Todo::Write),
        (State::Asked | State::Heard { written: false }, Event::Written(said)) => answered(said),

        (State::Heard { written }, Event::Looked(Effect::Same)) => (State::Allowed { written }, Todo::FindPlace),
        // What they said is written down whatever comes of it.
        (State::Heard { written: false }, Event::Looked(_)) => (state, Todo::Write),
        (State::Heard { written: true }, Event::Looked(Effect::Changed)) => refuse(Refusal::Changed, true),
        (State::Heard { written: true }, Event::Looked(Effect::Unknown)) => refuse(Refusal::Unknown, false),
        (State::Heard { written: true }, Event::Checked(true)) => (State::Allowed { written: true }, Todo::FindPlace),
        (State::Heard { written: true }, Event::Checked(false)) => refuse(Refusal::Edit, true),

        (State::Allowed { written }, Event::Place(true)) => (state, Todo::Start { written }),
        // What a person has just said does not wait with the call.
        (State::Allowed { written: false }, Event::Place(false)) => (state, Todo::Write),
        (State::Allowed { written: true }, Event::Place(false)) => (state, Todo::AwaitPlace),
        (State::Allowed { written: false }, Event::Written(_)) => (State::Allowed { written: true }, Todo::AwaitPlace),
        (State::Allowed { .. }, Event::Started) => (State::Ended, Todo::Run),

        _ => refuse(Refusal::Confused, false),
    }
}

/// The row of the ask has an answer.
fn answered(said: Said) -> (State, Todo) {
    match said {
        Said::Yes => (State::Heard { written: true }, Todo::Look),
        Said::Edited => (State::Heard { written: true }, Todo::Check),
        Said::No => (State::Ended, Todo::Refuse { why: Refusal::Denied, told: true }),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const SAID: [Said; 3] = [Said::Yes, Said::Edited, Said::No];

    fn rows() -> Vec<Event> {
        let plain = [Row::Open, Row::Expired, Row::Withdrawn, Row::Used];
        plain.into_iter().chain(SAID.map(Row::Answered)).map(Event::Read).collect()
    }

    /// What may come of what is done: the promise of `asking`. `heard`: what the person said where the call shows its ask.
    fn outcomes(todo: Todo, heard: Option<Said>) -> Vec<Event> {
        match todo {
            Todo::Look => [Effect::Same, Effect::Changed, Effect::Unknown].map(Event::Looked).to_vec(),
            Todo::Check => [true, false].map(Event::Checked).to_vec(),
            Todo::Write => rows().into_iter().chain(heard.map(Event::Written)).collect(),
            Todo::FindPlace => [true, false].map(Event::Place).to_vec(),
            Todo::AwaitPlace => vec![Event::Place(true)],
            Todo::Start { written: true } => vec![Event::Started],
            // Somebody else may have answered meanwhile.
            Todo::Start { written: false } => rows().into_iter().chain([Event::Started]).collect(),
            Todo::Run | Todo::TellPending | Todo::Refuse { .. } => Vec::new(),
        }
    }

    /// A way that a call takes, as far as it is known.
    #[derive(Clone)]
    struct Way {
        state: State,
        /// What the person said where the call shows its ask.
        heard: Option<Said>,
        events: Vec<Event>,
        done: Vec<Todo>,
    }

    /// Each way that a call can take, as the events on it and what it ends with. Nothing is done a third time on it.
    fn ways() -> Vec<(Vec<Event>, Todo)> {
        let asked = |heard| Way { state: State::Asked, heard, events: Vec::new(), done: Vec::new() };
        let mut ended = Vec::new();
        let mut open: Vec<(Way, Event)> = rows().into_iter().map(|row| (asked(None), row)).collect();
        open.extend(SAID.map(|said| (asked(Some(said)), Event::Heard(said))));
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
    fn agreed(events: &[Event]) -> bool {
        let said = events.iter().rev().find_map(|event| match event {
            Event::Read(Row::Answered(said)) | Event::Heard(said) | Event::Written(said) => Some(*said != Said::No),
            Event::Read(_) => Some(false),
            _ => None,
        });
        said == Some(true)
    }

    #[test]
    fn a_call_runs_only_after_a_yes_to_what_it_does_and_once_that_is_written() {
        let ways = ways();
        let running: Vec<_> = ways.iter().filter(|(_, todo)| *todo == Todo::Run).collect();
        assert!(running.len() > 10, "{} ways lead there", running.len());
        for (events, _) in running {
            assert!(agreed(events), "{events:?}");
            // What was looked at is looked at after the answer that counts.
            let answer = events.iter().rposition(|event| matches!(event, Event::Read(_) | Event::Heard(_)));
            let after = &events[answer.unwrap_or_default()..];
            let fits = after.iter().any(|e| matches!(e, Event::Looked(Effect::Same) | Event::Checked(true)));
            assert!(fits, "{events:?}");
            assert!(!after.contains(&Event::Checked(false)), "{events:?}");
            assert!(events.contains(&Event::Place(true)) && events.last() == Some(&Event::Started), "{events:?}");
        }
    }

    #[test]
    fn nothing_that_can_happen_confuses_it_and_nothing_else_lets_a_call_run() {
        for (events, todo) in ways() {
            assert!(!matches!(todo, Todo::Refuse { why: Refusal::Confused, .. }), "{events:?}");
        }
        let states = [State::Asked, State::Ended]
            .into_iter()
            .chain([true, false].map(|written| State::Heard { written }))
            .chain([true, false].map(|written| State::Allowed { written }));
        for state in states {
            let runs = step(state, Event::Started).1 == Todo::Run;
            assert_eq!(runs, matches!(state, State::Allowed { .. }), "{state:?}");
        }
    }

    #[test]
    fn an_answer_is_written_down_whatever_comes_of_the_call() {
        for (events, todo) in ways() {
            // Until somebody else turns out to have been faster, or the row says that it is too late.
            let heard = matches!(events.first(), Some(Event::Heard(_)));
            if heard && !events.iter().any(|event| matches!(event, Event::Read(_))) {
                let written = events.iter().any(|event| matches!(event, Event::Written(_) | Event::Started));
                assert!(written, "{events:?} ends in {todo:?}");
            }
        }
    }

    #[test]
    fn what_lets_nothing_run_is_used_up_where_a_person_has_said_it() {
        let told: BTreeSet<_> = ways()
            .into_iter()
            .filter_map(|(_, todo)| match todo {
                Todo::Refuse { why, told } => Some((format!("{why:?}"), told)),
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
        assert_eq!(told, expected.map(|(why, told)| (why.to_owned(), told)).into());
    }

    /// A person who has answered does not wait until the calls before theirs have run.
    #[test]
    fn an_answer_does_not_wait_for_a_place() {
        let (state, todo) = step(State::Allowed { written: false }, Event::Place(false));
        assert_eq!(todo, Todo::Write);
        assert_eq!(step(state, Event::Written(Said::Yes)), (State::Allowed { written: true }, Todo::AwaitPlace));
    }
}
