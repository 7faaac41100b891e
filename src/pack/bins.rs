//! Choice of the open bin for a sequence, by a search over free space instead of bins.

use super::bit_tree::BitTree;

/// Rule that chooses a bin among all bins with room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Fit {
    /// The lowest bin with room.
    #[default]
    First,
    /// The fullest bin with room: the largest number of used cells, summed over features. Ties go to the lowest bin.
    Best,
}

/// Bins of a group, indexed by free space.
#[derive(Clone, Debug)]
pub(crate) enum Bins {
    First(MaxTree),
    Best(FreeSet),
}

impl Bins {
    pub(crate) fn new(fit: Fit, bins: usize, length: usize) -> Self {
        match fit {
            Fit::First => Self::First(MaxTree::new(bins, length)),
            Fit::Best => Self::Best(FreeSet::new(bins, length)),
        }
    }

    /// Returns the bin for a sequence of `need` cells; `None` if no bin has room.
    #[inline]
    pub(crate) fn find(&self, need: usize) -> Option<usize> {
        match self {
            Self::First(tree) => tree.find(need),
            Self::Best(set) => set.find(need),
        }
    }

    /// Sets the free cells of `bin`; `None` closes the bin.
    #[inline]
    pub(crate) fn set(&mut self, bin: usize, free: Option<usize>) {
        match self {
            Self::First(tree) => tree.set(bin, free),
            Self::Best(set) => set.set(bin, free),
        }
    }

    /// Empties all bins.
    pub(crate) fn reset(&mut self) {
        match self {
            Self::First(tree) => tree.reset(),
            Self::Best(set) => set.reset(),
        }
    }
}

/// Tournament tree over bins. Each node holds the most free space below it.
///
/// A single walk down the tree finds the lowest bin with room.
#[derive(Clone, Debug)]
pub(crate) struct MaxTree {
    /// Nodes in heap order, from index 1. A leaf holds free cells + 1, or 0 if the bin is closed or does not exist.
    nodes: Vec<usize>,
    leaves: usize,
    bins: usize,
    length: usize,
}

impl MaxTree {
    fn new(bins: usize, length: usize) -> Self {
        let leaves = bins.next_power_of_two();
        let mut tree = Self { nodes: vec![0; 2 * leaves], leaves, bins, length };
        tree.reset();
        tree
    }

    fn reset(&mut self) {
        self.nodes[self.leaves..self.leaves + self.bins].fill(self.length + 1);
        for node in (1..self.leaves).rev() {
            self.nodes[node] = self.nodes[2 * node].max(self.nodes[2 * node + 1]);
        }
    }

    #[inline]
    fn find(&self, need: usize) -> Option<usize> {
        if self.nodes[1] <= need {
            return None;
        }
        let mut node = 1;
        while node < self.leaves {
            // Branch-free: takes the left child if it has room, else the right child.
            node = 2 * node + usize::from(self.nodes[2 * node] <= need);
        }
        Some(node - self.leaves)
    }

    #[inline]
    fn set(&mut self, bin: usize, free: Option<usize>) {
        let mut node = self.leaves + bin;
        let mut most = free.map_or(0, |f| f + 1);
        self.nodes[node] = most;
        while node > 1 {
            most = most.max(self.nodes[node ^ 1]);
            node /= 2;
            if self.nodes[node] == most {
                return;
            }
            self.nodes[node] = most;
        }
    }
}

/// Set of integers that encode pairs (free space, bin).
///
/// The least member at or above (need, 0) is the fullest bin with room. Ties go to the lowest bin.
#[derive(Clone, Debug)]
pub(crate) struct FreeSet {
    set: BitTree,
    /// Member of each bin; `None` if the bin is closed.
    of_bin: Vec<Option<usize>>,
    length: usize,
    /// Number of bits in a bin number.
    shift: u32,
}

impl FreeSet {
    fn new(bins: usize, length: usize) -> Self {
        let shift = bins.next_power_of_two().trailing_zeros();
        let mut set = Self { set: BitTree::new((length + 1) << shift), of_bin: vec![None; bins], length, shift };
        set.reset();
        set
    }

    fn reset(&mut self) {
        for bin in 0..self.of_bin.len() {
            self.set(bin, Some(self.length));
        }
    }

    #[inline]
    fn find(&self, need: usize) -> Option<usize> {
        self.set.next(need << self.shift).map(|member| member & ((1 << self.shift) - 1))
    }

    #[inline]
    fn set(&mut self, bin: usize, free: Option<usize>) {
        let member = free.map(|free| free << self.shift | bin);
        let old = std::mem::replace(&mut self.of_bin[bin], member);
        if let Some(old) = old {
            self.set.remove(old);
        }
        if let Some(member) = member {
            self.set.insert(member);
        }
    }
}

/// Finds the bin for an element of several features, all of which must fit.
///
/// `used` holds the used cells of each bin, feature by feature. `open` returns true if a bin accepts another element.
/// This is a linear scan, because several features have no common order of free space.
pub(crate) fn scan(
    fit: Fit,
    used: &[usize],
    needs: &[usize],
    lengths: &[usize],
    open: impl Fn(usize) -> bool,
) -> Option<usize> {
    let mut fullest: Option<(usize, usize)> = None;
    for (bin, used) in used.chunks_exact(needs.len()).enumerate() {
        let fits = used.iter().zip(needs).zip(lengths).all(|((used, need), length)| used + need <= *length);
        if !fits || !open(bin) {
            continue;
        }
        if fit == Fit::First {
            return Some(bin);
        }
        let sum = used.iter().sum();
        if fullest.is_none_or(|(_, most)| sum > most) {
            fullest = Some((bin, sum));
        }
    }
    fullest.map(|(bin, _)| bin)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The search over free space and the scan over bins choose the same bin.
        #[test]
        fn search_equals_scan(
            fit in prop_oneof![Just(Fit::First), Just(Fit::Best)],
            bins in 1usize..70,
            length in 1usize..200,
            most in 1usize..9,
            needs in prop::collection::vec(0usize..200, 0..400),
        ) {
            let mut search = Bins::new(fit, bins, length);
            let (mut used, mut counts) = (vec![0; bins], vec![0; bins]);
            for need in needs {
                let found = search.find(need);
                prop_assert_eq!(found, scan(fit, &used, &[need], &[length], |bin| counts[bin] < most));
                match found {
                    Some(bin) => {
                        used[bin] += need;
                        counts[bin] += 1;
                        search.set(bin, (counts[bin] < most).then(|| length - used[bin]));
                    }
                    None => {
                        search.reset();
                        (used, counts) = (vec![0; bins], vec![0; bins]);
                    }
                }
            }
        }
    }

    #[test]
    fn several_features_must_all_fit_and_the_fullest_sum_wins() {
        let used = [3, 9, 5, 1, 4, 3];
        let open = |_| true;
        assert_eq!(scan(Fit::First, &used, &[2, 2], &[10, 10], open), Some(1));
        assert_eq!(scan(Fit::Best, &used, &[2, 1], &[10, 10], open), Some(0));
        assert_eq!(scan(Fit::Best, &used, &[2, 2], &[10, 10], open), Some(2));
        assert_eq!(scan(Fit::Best, &used, &[2, 2], &[10, 10], |bin| bin != 2), Some(1));
        assert_eq!(scan(Fit::Best, &used, &[7, 2], &[10, 10], open), None);
    }
}
