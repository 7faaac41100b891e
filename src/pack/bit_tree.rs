//! Set of small integers with queries for the next member at or above and the last member at or below a number.

/// Set of integers below a fixed bound, as a tree of 64-bit words.
///
/// Each bit of a level is 1 if the word below it has a bit set.
/// Every operation is `O(log64 bound)`: two levels up to 4,096, three up to 262,144.
#[derive(Clone, Debug)]
pub(crate) struct BitTree {
    /// Levels of the tree: members first, then summaries from bottom to top.
    levels: Vec<Vec<u64>>,
    bound: usize,
}

impl BitTree {
    /// Creates an empty set of integers below `bound`.
    pub(crate) fn new(bound: usize) -> Self {
        let mut levels = Vec::new();
        let mut words = bound.div_ceil(64).max(1);
        loop {
            levels.push(vec![0u64; words]);
            if words == 1 {
                return Self { levels, bound };
            }
            words = words.div_ceil(64);
        }
    }

    /// Adds `member`, which must be below the bound.
    #[inline]
    pub(crate) fn insert(&mut self, member: usize) {
        let mut at = member;
        for level in &mut self.levels {
            let word = &mut level[at >> 6];
            let was_empty = *word == 0;
            *word |= 1 << (at & 63);
            if !was_empty {
                return;
            }
            at >>= 6;
        }
    }

    /// Removes `member`.
    #[inline]
    pub(crate) fn remove(&mut self, member: usize) {
        let mut at = member;
        for level in &mut self.levels {
            let word = &mut level[at >> 6];
            *word &= !(1 << (at & 63));
            if *word != 0 {
                return;
            }
            at >>= 6;
        }
    }

    /// Returns the least member at or above `from`.
    #[inline]
    pub(crate) fn next(&self, from: usize) -> Option<usize> {
        let mut at = from;
        for (height, level) in self.levels.iter().enumerate() {
            let rest = level.get(at >> 6)? & (!0 << (at & 63));
            if rest != 0 {
                let found = (at & !63) | rest.trailing_zeros() as usize;
                let below = self.levels[..height].iter().rev();
                return Some(below.fold(found, |at, level| (at << 6) | level[at].trailing_zeros() as usize));
            }
            at = (at >> 6) + 1;
        }
        None
    }

    /// Returns the greatest member at or below `upto`.
    #[inline]
    pub(crate) fn prev(&self, upto: usize) -> Option<usize> {
        let mut at = upto.min(self.bound.checked_sub(1)?);
        for (height, level) in self.levels.iter().enumerate() {
            let rest = level[at >> 6] & (!0 >> (63 - (at & 63)));
            if rest != 0 {
                let found = (at & !63) | (63 - rest.leading_zeros() as usize);
                let below = self.levels[..height].iter().rev();
                return Some(below.fold(found, |at, level| (at << 6) | (63 - level[at].leading_zeros() as usize)));
            }
            at = (at >> 6).checked_sub(1)?;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn agrees_with_a_sorted_set(
            bound in prop_oneof![1usize..200, 4000usize..5000, 270_000usize..300_000],
            steps in prop::collection::vec((any::<bool>(), any::<prop::sample::Index>()), 1..200),
        ) {
            let (mut tree, mut set) = (BitTree::new(bound), BTreeSet::new());
            for (insert, at) in steps {
                let at = at.index(bound);
                if insert {
                    tree.insert(at);
                    set.insert(at);
                } else if let Some(&member) = set.range(at..).next() {
                    tree.remove(member);
                    set.remove(&member);
                }
                for probe in [0, at, at + 1, at.saturating_sub(1), bound - 1, bound, bound + 70] {
                    prop_assert_eq!(tree.next(probe), set.range(probe..).next().copied());
                    prop_assert_eq!(tree.prev(probe), set.range(..=probe).next_back().copied());
                }
            }
        }
    }

    #[test]
    fn an_empty_range_has_no_members() {
        assert_eq!((BitTree::new(0).next(0), BitTree::new(0).prev(9)), (None, None));
    }
}
