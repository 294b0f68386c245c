//! Lists and previews of change sets that somebody has looked at, kept until what they were made of is changed: a preview lays all open
//! sets of a session over the package, which takes longer than a page should, and open pages ask for it again and again.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;

/// How many are kept of one project, and the bytes of each as JSON.
const KEPT_MAX: usize = 32;
const KEPT_BYTES_MAX: usize = 1024 * 1024;

/// What was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Look {
    /// The sets of one session, or of all; only open ones, or all.
    List(Option<String>, bool),
    /// A set, or the operations of it that were chosen.
    Preview(String, Option<Vec<i64>>),
}

/// What is kept, the latest last, each with the mark of what it was made of.
#[derive(Default)]
pub(super) struct LookedAt(Mutex<VecDeque<Kept>>);

struct Kept {
    look: Look,
    mark: String,
    seen: Arc<dyn Any + Send + Sync>,
}

impl LookedAt {
    /// What was seen at the last look, with its mark.
    pub(super) fn known<T: Send + Sync + 'static>(&self, look: &Look) -> Option<(String, Arc<T>)> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Kept { mark, seen, .. } = kept.iter().find(|kept| kept.look == *look)?;
        Some((mark.clone(), Arc::clone(seen).downcast().ok()?))
    }

    /// Keeps what was seen, unless it is large, and gives it back.
    pub(super) fn keep<T: Clone + Serialize + Send + Sync + 'static>(&self, look: Look, mark: String, seen: T) -> T {
        let is_small = serde_json::to_vec(&seen).is_ok_and(|text| text.len() <= KEPT_BYTES_MAX);
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|kept| kept.look != look);
        if is_small {
            if kept.len() == KEPT_MAX {
                kept.pop_front();
            }
            kept.push_back(Kept { look, mark, seen: Arc::new(seen.clone()) });
        }
        seen
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test says by panicking what does not hold")]
mod tests {
    use std::sync::Arc;

    use super::{KEPT_BYTES_MAX, KEPT_MAX, Look, LookedAt};

    #[test]
    fn what_was_seen_is_kept_with_its_mark_until_it_is_seen_anew() {
        let (kept, list) = (LookedAt::default(), Look::List(None, true));
        assert!(kept.known::<Vec<u8>>(&list).is_none());
        kept.keep(list.clone(), "1".to_owned(), vec![1_u8]);
        assert_eq!(kept.known(&list), Some(("1".to_owned(), Arc::new(vec![1_u8]))));
        let preview = Look::Preview("cs-1".to_owned(), None);
        kept.keep(preview.clone(), "2".to_owned(), "seen".to_owned());
        assert_eq!(kept.known(&preview), Some(("2".to_owned(), Arc::new("seen".to_owned()))));
        assert_eq!(kept.known(&list), Some(("1".to_owned(), Arc::new(vec![1_u8]))), "each has a mark of its own");
        kept.keep(list.clone(), "3".to_owned(), vec![3_u8]);
        assert_eq!(kept.known(&list), Some(("3".to_owned(), Arc::new(vec![3_u8]))));
        kept.keep(list.clone(), "4".to_owned(), vec![0_u8; KEPT_BYTES_MAX]);
        assert!(kept.known::<Vec<u8>>(&list).is_none(), "what is too large to keep takes the place of what was");
    }

    #[test]
    fn there_are_not_too_many_and_none_is_large() {
        let kept = LookedAt::default();
        let large = Look::Preview("large".to_owned(), None);
        kept.keep(large.clone(), "1".to_owned(), "x".repeat(KEPT_BYTES_MAX));
        assert!(kept.known::<String>(&large).is_none());
        for number in 0..5 * KEPT_MAX {
            kept.keep(Look::Preview(format!("cs-{number}"), None), "1".to_owned(), "x".to_owned());
            assert!(kept.0.lock().unwrap().len() <= KEPT_MAX);
        }
        let preview = |number: usize| kept.known::<String>(&Look::Preview(format!("cs-{number}"), None));
        assert!(preview(4 * KEPT_MAX).is_some() && preview(4 * KEPT_MAX - 1).is_none(), "the oldest goes");
    }
}
