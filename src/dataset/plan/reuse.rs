//! Elements that are requested several times within a short interval, and are evaluated once.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

use crate::error::{Error, Result};

/// Maximum number of evaluations between two requests of an element for which its value is kept.
const NEAR: u64 = 64;

/// Values of elements that are requested repeatedly. Requests come in the order of the expected uses, so that both lead
/// to the same evaluations.
pub(crate) struct Reuse<K, V> {
    entries: HashMap<K, Entry<V>>,
    /// Number of expected evaluations so far.
    evaluations: u64,
    /// The element evaluated last. It is kept, because another use may be announced later.
    last: Option<K>,
}

/// An element that is expected, or whose value is kept.
struct Entry<V> {
    /// The expected or current evaluations of the element.
    uses: VecDeque<Uses>,
    /// Number of evaluations at the last expected use.
    at: u64,
    /// The value of the first of these evaluations.
    value: Option<V>,
}

/// Expected uses of an evaluation.
#[derive(Default)]
struct Uses {
    /// The number of expected uses.
    left: usize,
    /// The pieces for which the evaluation is expected.
    pieces: Vec<bool>,
}

impl Uses {
    fn has(&self, piece: usize) -> bool {
        self.pieces.get(piece).copied().unwrap_or(false)
    }

    fn expect(&mut self, piece: Option<usize>) {
        self.left += 1;
        if let Some(piece) = piece {
            self.pieces.resize(self.pieces.len().max(piece + 1), false);
            self.pieces[piece] = true;
        }
    }
}

impl<K, V> Default for Reuse<K, V> {
    fn default() -> Self {
        Self { entries: HashMap::new(), evaluations: 0, last: None }
    }
}

impl<K: Clone + Eq + Hash, V> Reuse<K, V> {
    /// Expects a use of an element, or of a piece of it. Returns true if the element must be evaluated for this use.
    ///
    /// An evaluation yields each piece once. `gives` returns true if the kept value still has the piece.
    pub(crate) fn expect(&mut self, key: K, piece: Option<u32>, gives: impl FnOnce(&V) -> bool) -> bool {
        let piece = piece.map(|piece| piece as usize);
        let evaluations = self.evaluations;
        let entry =
            self.entries.entry(key).or_insert_with(|| Entry { uses: VecDeque::new(), at: evaluations, value: None });
        let is_near = evaluations - entry.at <= NEAR;
        let is_kept = match entry.uses.back() {
            Some(uses) if !is_near || piece.is_some_and(|piece| uses.has(piece)) => false,
            // The kept value belongs to the first evaluation.
            Some(_) => entry.uses.len() > 1 || entry.value.as_ref().is_none_or(gives),
            None => entry.value.as_ref().is_some_and(gives),
        };
        if !is_kept {
            self.evaluations += 1;
            entry.uses.push_back(Uses::default());
            if entry.uses.len() == 1 {
                entry.value = None;
            }
        } else if entry.uses.is_empty() {
            entry.uses.push_back(Uses::default());
        }
        entry.at = self.evaluations;
        entry.uses.iter_mut().next_back().into_iter().for_each(|uses| uses.expect(piece));
        !is_kept
    }

    /// Returns the kept value of an element. If it is `None`, the caller must evaluate the element and
    /// [`put`](Self::put) its value.
    pub(crate) fn get(&mut self, key: &K) -> Option<&mut V> {
        self.entries.get_mut(key)?.value.as_mut()
    }

    /// Returns the kept value of an element, or keeps and returns the value that `make` evaluates.
    ///
    /// # Errors
    /// The error of `make`.
    pub(super) fn get_or_put(&mut self, key: K, make: impl FnOnce() -> Result<V>) -> Result<&mut V> {
        if self.get(&key).is_none() {
            self.put(key.clone(), make()?);
        }
        self.get(&key).ok_or_else(|| Error::state("an element is not kept"))
    }

    /// Keeps the value of an evaluation.
    pub(crate) fn put(&mut self, key: K, value: V) -> &mut V {
        if let Some(last) = self.last.take().filter(|last| *last != key)
            && self.entries.get(&last).is_some_and(|entry| entry.uses.is_empty())
        {
            self.entries.remove(&last);
        }
        self.last = Some(key.clone());
        let at = self.evaluations;
        let entry = self.entries.entry(key).or_insert_with(|| Entry { uses: VecDeque::new(), at, value: None });
        entry.value.insert(value)
    }

    /// Removes an expected use, and drops a value that has no other expected use.
    pub(crate) fn used(&mut self, key: &K) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        if let Some(uses) = entry.uses.front_mut() {
            uses.left = uses.left.saturating_sub(1);
            if uses.left > 0 {
                return;
            }
            entry.uses.pop_front();
        }
        if !entry.uses.is_empty() {
            entry.value = None;
        } else if self.last.as_ref() != Some(key) {
            self.entries.remove(key);
        }
    }

    /// Drops all expected uses and values.
    pub(crate) fn forget(&mut self) {
        self.entries.clear();
        self.last = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests the keys and pieces in `asked`, and expects `ahead` of them in advance. Returns the evaluated keys,
    /// and the largest number of kept values.
    fn evaluations(asked: &[(u64, Option<u32>)], ahead: usize) -> (Vec<u64>, usize) {
        let (mut reuse, mut listed, mut evaluated, mut most) = (Reuse::default(), VecDeque::new(), Vec::new(), 0);
        let gives = |piece: Option<u32>| move |value: &Vec<u32>| piece.is_none_or(|piece| !value.contains(&piece));
        let mut expected = asked.iter();
        for (at, &(key, piece)) in asked.iter().enumerate() {
            while asked.len() - expected.len() < at + ahead {
                let Some(&(key, piece)) = expected.next() else { break };
                if reuse.expect(key, piece, gives(piece)) {
                    listed.push_back(key);
                }
            }
            if reuse.get(&key).is_none() {
                assert_eq!(listed.pop_front(), Some(key), "evaluated in the order in which it is expected");
                evaluated.push(key);
                reuse.put(key, Vec::new());
            }
            let given = reuse.get(&key).unwrap();
            assert!(piece.is_none_or(|piece| !given.contains(&piece)), "{key} {piece:?} is given twice");
            given.extend(piece);
            reuse.used(&key);
            most = most.max(reuse.entries.values().filter(|entry| entry.value.is_some()).count());
        }
        assert!(listed.is_empty() && reuse.entries.len() <= 1);
        (evaluated, most)
    }

    #[test]
    fn what_is_asked_for_again_soon_is_evaluated_once() {
        let whole = |keys: &[u64]| keys.iter().map(|&key| (key, None)).collect::<Vec<_>>();
        for ahead in [1, 2, 7] {
            assert_eq!(evaluations(&whole(&[1, 1, 2, 2, 2, 3]), ahead), (vec![1, 2, 3], 1));
        }
        let apart = whole(&[1, 2, 1, 3, 2, 1]);
        assert_eq!(evaluations(&apart, 6), (vec![1, 2, 3], 3));
        assert_eq!(evaluations(&apart, 1).0, [1, 2, 1, 3, 2, 1], "nobody knew");
        let mut far = whole(&[500]);
        far.extend(whole(&(0..2 * NEAR).collect::<Vec<_>>()));
        far.extend(whole(&[500, 3]));
        assert_eq!(evaluations(&far, 1000).0.len() as u64, 2 * NEAR + 3);
        assert_eq!(evaluations(&far, 1000).1, 1, "none is kept for so long");
    }

    #[test]
    fn a_piece_is_given_once_by_an_evaluation() {
        let pieces = |asked: &[(u64, u32)]| asked.iter().map(|&(key, piece)| (key, Some(piece))).collect::<Vec<_>>();
        for ahead in [1, 3, 9] {
            assert_eq!(evaluations(&pieces(&[(1, 0), (1, 2), (1, 1), (1, 1), (1, 0)]), ahead).0, [1, 1]);
        }
        assert_eq!(evaluations(&pieces(&[(1, 0), (2, 0), (1, 1), (2, 1), (1, 0), (1, 1)]), 6).0, [1, 2, 1]);
    }
}
