//! A second, small implementation of change sets for `builder_walk.rs`: an object is a map of places, a change set is the
//! objects that it wants, a merge compares value with value. It knows no text, no JSON and no SQL.

use std::collections::{BTreeMap, BTreeSet};

/// The values of one object by place, such as `slot 3` or `note`.
pub(crate) type Object = BTreeMap<String, String>;
/// The objects of a package by name, such as `step:main/a`.
pub(crate) type State = BTreeMap<String, Object>;

/// Both changes of an object. The outer `None` is a conflict, the inner one an object that is not there.
pub(crate) fn merge(base: Option<&Object>, now: Option<&Object>, ours: Option<&Object>) -> Option<Option<Object>> {
    if let Some(clean) = unchanged(base, now, ours) {
        return Some(clean.cloned());
    }
    let (base, now, ours) = (base?, now?, ours?);
    let places: BTreeSet<&String> = base.keys().chain(now.keys()).chain(ours.keys()).collect();
    let mut merged = Object::new();
    for place in places {
        let value = unchanged(base.get(place), now.get(place), ours.get(place))?;
        merged.extend(value.map(|value| (place.clone(), value.clone())));
    }
    Some(Some(merged))
}

fn unchanged<T: PartialEq>(base: T, now: T, ours: T) -> Option<T> {
    if ours == base || ours == now {
        Some(now)
    } else if now == base {
        Some(ours)
    } else {
        None
    }
}

/// The base of a change whose author was told of a conflict: the former base, with somebody else's values at the places that
/// both have changed.
pub(crate) fn with_told(base: Option<&Object>, then: Option<&Object>, ours: Option<&Object>) -> Option<Object> {
    if merge(base, then, ours).is_some() {
        return base.cloned();
    }
    let (Some(base), Some(then), Some(ours)) = (base, then, ours) else { return then.cloned() };
    let mut told = base.clone();
    for place in base.keys().chain(then.keys()).chain(ours.keys()) {
        if unchanged(base.get(place), then.get(place), ours.get(place)).is_none() {
            match then.get(place) {
                Some(value) => drop(told.insert(place.clone(), value.clone())),
                None => drop(told.remove(place)),
            }
        }
    }
    Some(told)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    Open,
    Applied,
    Rejected,
    Blocked,
}

/// What a set wants of one object.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    pub(crate) object: String,
    pub(crate) base: Option<Object>,
    pub(crate) wanted: Option<Object>,
    pub(crate) is_open: bool,
    /// The places that it changes, and the texts that no other set writes.
    pub(crate) places: Vec<String>,
    pub(crate) markers: Vec<String>,
}

#[derive(Debug, Clone)]
pub(crate) struct Set {
    pub(crate) session: String,
    pub(crate) status: Status,
    /// By the position of the operation.
    pub(crate) drafts: Vec<Draft>,
    /// Whether its effect and its validity are known without asking: values of places, new objects, nothing that refers.
    pub(crate) is_plain: bool,
    /// Whether it changes the graph.
    pub(crate) has_graph: bool,
    /// Objects that a validation said are in conflict, as they then were.
    pub(crate) told: BTreeMap<String, Option<Object>>,
}

impl Set {
    pub(crate) fn wishes(&self) -> impl Iterator<Item = &Draft> {
        self.drafts.iter().filter(|draft| draft.is_open)
    }

    pub(crate) fn is_about(&self, object: &str) -> bool {
        self.wishes().any(|draft| draft.object == object)
    }
}

/// A wish as it is sent: the object, what it is to be, the part of the workflow that it names.
#[derive(Debug, Clone)]
pub(crate) struct Wish {
    pub(crate) object: String,
    pub(crate) wanted: Option<Object>,
    /// `doc ` or `graph ` where a part is named; empty where the object is named as a whole.
    pub(crate) part: &'static str,
    pub(crate) places: Vec<String>,
    pub(crate) markers: Vec<String>,
    /// Whether it is made on what the session sees, whatever it read: a passage that is found, or what follows from a change.
    pub(crate) is_made_on_all: bool,
}

#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) now: State,
    /// The package after each change; the first is the import.
    pub(crate) moments: Vec<State>,
    pub(crate) undone: BTreeSet<usize>,
    pub(crate) sets: BTreeMap<i64, Set>,
    /// Texts of rejected sets.
    pub(crate) forbidden: BTreeSet<String>,
}

impl Model {
    pub(crate) fn new(now: State) -> Self {
        let moments = vec![now.clone()];
        Self { now, moments, undone: BTreeSet::new(), sets: BTreeMap::new(), forbidden: BTreeSet::new() }
    }

    pub(crate) fn open(&self, session: &str) -> Vec<i64> {
        let is_open = |set: &Set| set.session == session && set.status == Status::Open;
        self.sets.iter().filter(|(_, set)| is_open(set)).map(|(number, _)| *number).collect()
    }

    /// The last draft of an object, with what others have changed since in it; alone where both changed the same places.
    fn last_draft(&self, session: &str, object: &str) -> Option<Draft> {
        let open = self.open(session);
        let find = |number: &i64| self.sets[number].wishes().find(|draft| draft.object == object);
        let last = open.iter().rev().find_map(find)?.clone();
        let now = self.now.get(object);
        Some(match merge(last.base.as_ref(), now, last.wanted.as_ref()) {
            Some(wanted) => Draft { base: now.cloned(), wanted, ..last },
            None => last,
        })
    }

    /// The package as a session reads it.
    pub(crate) fn view(&self, session: &str) -> State {
        let mut view = self.now.clone();
        let sets = self.open(session);
        let drafted = sets.iter().flat_map(|number| self.sets[number].wishes().map(|draft| &draft.object));
        for object in drafted.collect::<BTreeSet<_>>() {
            match self.last_draft(session, object).and_then(|draft| draft.wanted) {
                Some(wanted) => drop(view.insert(object.clone(), wanted)),
                None => drop(view.remove(object)),
            }
        }
        view
    }

    /// The earlier open sets of its session whose text a set contains.
    pub(crate) fn contained(&self, number: i64, chosen: Option<&[usize]>) -> BTreeSet<i64> {
        let own = self.chosen(number, chosen);
        let open = self.open(&self.sets[&number].session);
        let mut taken = BTreeSet::new();
        loop {
            let mut known: Vec<(i64, &Draft)> = own.iter().map(|draft| (number, *draft)).collect();
            known.extend(taken.iter().flat_map(|n: &i64| self.sets[n].wishes().map(move |draft| (*n, draft))));
            let is_below = |other: &i64| {
                *other != number && known.iter().any(|(n, draft)| n > other && self.sets[other].is_about(&draft.object))
            };
            let found: BTreeSet<i64> = open.iter().copied().filter(is_below).collect();
            if found.is_subset(&taken) {
                return taken;
            }
            taken.extend(found);
        }
    }

    fn chosen(&self, number: i64, chosen: Option<&[usize]>) -> Vec<&Draft> {
        let all = self.sets[&number].drafts.iter().enumerate();
        let is_meant = |at: usize| chosen.is_none_or(|chosen| chosen.contains(&at));
        all.filter(|(at, draft)| draft.is_open && is_meant(*at)).map(|(_, draft)| draft).collect()
    }

    /// The last wish of a set and of those it is based on for each object.
    pub(crate) fn chain(
        &self,
        number: i64,
        chosen: Option<&[usize]>,
        based_on: &BTreeSet<i64>,
    ) -> BTreeMap<String, (i64, Draft)> {
        let mut numbers = based_on.clone();
        numbers.insert(number);
        let mut last = BTreeMap::new();
        for n in numbers {
            let drafts = if n == number { self.chosen(n, chosen) } else { self.sets[&n].wishes().collect() };
            last.extend(drafts.into_iter().map(|draft| (draft.object.clone(), (n, draft.clone()))));
        }
        last
    }

    /// The package after an apply of this chain; `None` where somebody else's change is in the way.
    pub(crate) fn after(&self, chain: &BTreeMap<String, (i64, Draft)>) -> Option<State> {
        let mut after = self.now.clone();
        for (object, (_, draft)) in chain {
            match merge(draft.base.as_ref(), self.now.get(object), draft.wanted.as_ref())? {
                Some(state) => drop(after.insert(object.clone(), state)),
                None => drop(after.remove(object)),
            }
        }
        Some(after)
    }

    /// What is applied is no longer open, and later sets of the session go on from it.
    pub(crate) fn settle(&mut self, number: i64, chain: BTreeMap<String, (i64, Draft)>, after: State) {
        let session = self.sets[&number].session.clone();
        for (object, (last, applied)) in chain {
            for (n, set) in self.sets.iter_mut().filter(|(_, set)| set.session == session) {
                for draft in set.drafts.iter_mut().filter(|draft| draft.is_open && draft.object == object) {
                    if *n <= last {
                        draft.is_open = false;
                    } else {
                        // What its author saw: this one over what was there then.
                        let seen = merge(applied.base.as_ref(), draft.base.as_ref(), applied.wanted.as_ref());
                        draft.base = seen.unwrap_or_else(|| applied.wanted.clone());
                    }
                }
            }
        }
        for set in self.sets.values_mut().filter(|set| set.session == session && set.status == Status::Open) {
            if set.wishes().next().is_none() {
                set.status = Status::Applied;
            }
        }
        self.commit(after);
    }

    /// Whether there is something new.
    pub(crate) fn commit(&mut self, after: State) -> bool {
        if after == self.now {
            return false;
        }
        self.now = after;
        self.moments.push(self.now.clone());
        true
    }

    /// Rejects sets. Answers those that contain their text, which are blocked now.
    pub(crate) fn reject(&mut self, numbers: &BTreeSet<i64>) -> BTreeSet<i64> {
        let Some(session) = numbers.first().map(|number| self.sets[number].session.clone()) else {
            return BTreeSet::new();
        };
        let open = self.open(&session);
        let is_above = |n: &i64| !numbers.contains(n) && !self.contained(*n, None).is_disjoint(numbers);
        let blocked: BTreeSet<i64> = open.into_iter().filter(is_above).collect();
        for (number, set) in &mut self.sets {
            if blocked.contains(number) {
                set.status = Status::Blocked;
            }
            if numbers.contains(number) {
                set.status = Status::Rejected;
                self.forbidden.extend(set.wishes().flat_map(|draft| draft.markers.clone()));
            }
        }
        blocked
    }

    /// Stages wishes that were made on `read` (what was seen, and what of it was there for everybody), or on what the session
    /// sees. `Err`: an earlier set of the session is in the way.
    pub(crate) fn drafts(
        &self,
        session: &str,
        read: Option<(&State, &State)>,
        wishes: &[Wish],
    ) -> Result<Vec<Draft>, ()> {
        let mut drafts = Vec::new();
        for wish in wishes {
            let current = self.now.get(&wish.object);
            let earlier = self.last_draft(session, &wish.object);
            let (mut base, mut wanted) = (current.cloned(), wish.wanted.clone());
            if let Some((read, there)) = read.filter(|_| !wish.is_made_on_all) {
                base = read.get(&wish.object).map(|then| as_named(then, current, wish.part));
                // Only a draft had made it, which was given up since, and not applied.
                if earlier.is_none() && current.is_none() && !there.contains_key(&wish.object) {
                    base = None;
                }
                if let Some(earlier) = &earlier {
                    wanted = merge(base.as_ref(), earlier.wanted.as_ref(), wanted.as_ref()).ok_or(())?;
                }
            }
            if let Some(earlier) = earlier {
                base = earlier.base;
            }
            let (object, places, markers) = (wish.object.clone(), wish.places.clone(), wish.markers.clone());
            drafts.push(Draft { object, base, wanted, is_open: true, places, markers });
        }
        Ok(drafts)
    }

    /// The package after an undo of a change; `None` where a later change is in the way.
    pub(crate) fn without(&self, moment: usize) -> Option<State> {
        let (former, applied) = (&self.moments[moment - 2], &self.moments[moment - 1]);
        let mut after = self.now.clone();
        for object in former.keys().chain(applied.keys()).collect::<BTreeSet<_>>() {
            match merge(applied.get(object), self.now.get(object), former.get(object))? {
                Some(state) => drop(after.insert(object.clone(), state)),
                None => drop(after.remove(object)),
            }
        }
        Some(after)
    }

    /// Whether an undo moves values alone, so that the merge of lines of JSON and of references cannot matter.
    pub(crate) fn is_simple(&self, moment: usize) -> bool {
        let (first, last) = (&self.moments[moment - 2], &self.now);
        let between = &self.moments[moment - 2..];
        let same = |name: &String| between.iter().all(|state| state.contains_key(name));
        let has_simple_places = |object: &Object| {
            let is_simple = |(place, value): (&String, &String)| {
                !value.contains("assets/") && (place != "heading" || value == "## Goal")
            };
            object.iter().filter(|(place, _)| !place.starts_with("graph ")).all(is_simple)
        };
        let graphs = || {
            between.iter().map(|state| {
                let places = state["workflow:main"].iter().filter(|(place, _)| place.starts_with("graph "));
                places.collect::<Vec<_>>()
            })
        };
        let is_one_graph = graphs().zip(graphs().skip(1)).all(|(a, b)| a == b);
        is_one_graph
            && first.keys().chain(last.keys()).all(same)
            && between.iter().all(|state| state.len() == first.len() && state.values().all(has_simple_places))
    }
}

/// An object as it was, but for the part that is not named: that is meant as it is now.
pub(crate) fn as_named(then: &Object, now: Option<&Object>, part: &str) -> Object {
    let (Some(now), false) = (now, part.is_empty()) else { return then.clone() };
    let named = then.iter().filter(|(place, _)| place.starts_with(part));
    let others = now.iter().filter(|(place, _)| !place.starts_with(part));
    named.chain(others).map(|(place, value)| (place.clone(), value.clone())).collect()
}
