//! Elements that are asked for several times within a short while: each is evaluated once.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

/// Evaluations between two times that an element is asked for, up to which it is kept in between.
const NEAR: u64 = 64;

/// Elements that are evaluated and asked for again. What is expected and what is asked for come in the same order, so that both know what is
/// evaluated.
pub(crate) struct Again<K, V> {
    entries: HashMap<K, Entry<V>>,
    /// Evaluations that were expected so far.
    evaluations: u64,
    /// The one evaluated last: it may be expected once more.
    last: Option<K>,
}

/// An element that is expected, or kept.
struct Entry<V> {
    /// Its evaluations that are expected, or in use.
    uses: VecDeque<Uses>,
    /// The number of evaluations when it was expected last.
    at: u64,
    /// What the first of those has yielded.
    value: Option<V>,
}

/// Uses of one evaluation.
#[derive(Default)]
struct Uses {
    /// Those that are expected.
    left: usize,
    /// The pieces that it was expected for.
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

impl<K, V> Default for Again<K, V> {
    fn default() -> Self {
        Self { entries: HashMap::new(), evaluations: 0, last: None }
    }
}

impl<K: Clone + Eq + Hash, V> Again<K, V> {
    /// Expects a use of an element, or of that piece of it, of which an evaluation gives each once; whether it is to be evaluated for it.
    /// `gives` says whether what is kept gives it.
    pub(crate) fn expect(&mut self, key: K, piece: Option<u32>, gives: impl FnOnce(&V) -> bool) -> bool {
        let piece = piece.map(|piece| piece as usize);
        let evaluations = self.evaluations;
        let entry =
            self.entries.entry(key).or_insert_with(|| Entry { uses: VecDeque::new(), at: evaluations, value: None });
        let is_near = evaluations - entry.at <= NEAR;
        let is_kept = match entry.uses.back() {
            Some(uses) if !is_near || piece.is_some_and(|piece| uses.has(piece)) => false,
            // What is kept is of the first evaluation.
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

    /// What is kept of an element; `None` where it is to be evaluated, and [put](Self::put).
    pub(crate) fn get(&mut self, key: &K) -> Option<&mut V> {
        self.entries.get_mut(key)?.value.as_mut()
    }

    /// Keeps what an evaluation has yielded.
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

    /// Counts an expected use off, and lets go of what nobody expects any more.
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

    /// Expects nothing, and keeps nothing.
    pub(crate) fn forget(&mut self) {
        self.entries.clear();
        self.last = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asks for these, a key with a piece each, `ahead` of which are expected at a time; the evaluations, and the most that are kept.
    fn evaluations(asked: &[(u64, Option<u32>)], ahead: usize) -> (Vec<u64>, usize) {
        let (mut again, mut listed, mut evaluated, mut most) = (Again::default(), VecDeque::new(), Vec::new(), 0);
        let gives = |piece: Option<u32>| move |value: &Vec<u32>| piece.is_none_or(|piece| !value.contains(&piece));
        let mut expected = asked.iter();
        for (at, &(key, piece)) in asked.iter().enumerate() {
            while asked.len() - expected.len() < at + ahead {
                let Some(&(key, piece)) = expected.next() else { break };
                if again.expect(key, piece, gives(piece)) {
                    listed.push_back(key);
                }
            }
            if again.get(&key).is_none() {
                assert_eq!(listed.pop_front(), Some(key), "evaluated in the order in which it is expected");
                evaluated.push(key);
                again.put(key, Vec::new());
            }
            let given = again.get(&key).unwrap();
            assert!(piece.is_none_or(|piece| !given.contains(&piece)), "{key} {piece:?} is given twice");
            given.extend(piece);
            again.used(&key);
            most = most.max(again.entries.values().filter(|entry| entry.value.is_some()).count());
        }
        assert!(listed.is_empty() && again.entries.len() <= 1);
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
