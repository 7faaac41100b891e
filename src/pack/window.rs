//! Best fit over a bounded look-ahead window.

use super::bit_tree::BitTree;
use super::feature::{self, Feature, OverLong, over_long, pieces};
use super::held::{Held, HeldState};
use super::stats::PackStats;
use crate::error::{Error, Result};

/// Options of a [`WindowPacker`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowOptions {
    /// Number of sequences to look ahead: all sequences of a row are within this many consecutive ordinals.
    pub window: usize,
    /// Maximum number of sequences in a row.
    pub max_sequences: Option<usize>,
    /// Policy for a sequence that is longer than a row.
    pub over_long: OverLong,
}

impl Default for WindowOptions {
    /// Returns options with a window of 1,024, any number of sequences per row, over-long sequences as an error.
    fn default() -> Self {
        Self { window: 1024, max_sequences: None, over_long: OverLong::Error }
    }
}

/// Planner of rows by best fit over a look-ahead window.
///
/// Each row begins with the oldest sequence of the window, then repeatedly takes the longest sequence that fits.
/// If nothing else would fit after that sequence, the row takes the pair that fills the gap best, if a pair fills it better.
///
/// Planning is separate from writing. Sequences are numbered as they are pushed, and a row is a list of these ordinals.
/// The caller holds the sequences and writes them. The plan is a function of the lengths alone.
///
/// The window is a range of consecutive ordinals, so a sequence is yielded before `window` more have been read.
/// The [state](HeldState) contains only the first ordinal of the window and a bitmap of the later ordinals already in rows.
///
/// With several features, the search uses the length of the first feature that is not a meta feature.
/// It tries up to 64 lengths until all features fit.
///
/// # Cost
/// `O(log64 length)` per sequence, and up to 32 pairs of lengths per row.
/// Memory is `O(window + length)`, about 16 bytes per entry.
/// # Source
/// Original algorithm. The search by length is an incremental form of the counting sort for best-fit-decreasing in
/// Ding et al., *Fewer truncations improve language modeling*, 2024.
#[derive(Debug)]
pub struct WindowPacker {
    features: Vec<Feature>,
    options: WindowOptions,
    /// Feature whose length is searched.
    key: usize,
    /// Lengths, tokens and links of each slot.
    slots: Slots,
    /// First and last slot of each length.
    ends: Vec<(u32, u32)>,
    /// Set of lengths that have a sequence.
    present: BitTree,
    held: Held,
    row: Vec<u64>,
    gaps: Vec<u32>,
    row_cells: u64,
    stats: PackStats,
}

impl WindowPacker {
    /// Creates a planner with an empty window.
    ///
    /// # Errors
    /// `Config` if the window is 0 or above 2^24, `max_sequences` is 0, or a feature is invalid.
    pub fn new(features: &[Feature], options: WindowOptions) -> Result<Self> {
        feature::check(features)?;
        let window = options.window;
        if window == 0 || window > 1 << 24 {
            return Err(Error::config(format!("a window of {window} sequences is not in 1..={}", 1 << 24)));
        }
        if options.max_sequences == Some(0) {
            return Err(Error::config("at most 0 sequences in a row leave no room for any"));
        }
        let key = features.iter().position(|f| !f.meta).unwrap_or(0);
        let length = features[key].length;
        let held = Held::new(window);
        Ok(Self {
            key,
            slots: Slots::new(held.slots(), features.len()),
            ends: vec![(NONE, NONE); length + 1],
            present: BitTree::new(length + 1),
            held,
            row: Vec::new(),
            gaps: Vec::with_capacity(features.len()),
            row_cells: features.iter().filter(|f| !f.meta).map(|f| f.length as u64).sum(),
            stats: PackStats::default(),
            features: features.to_vec(),
            options,
        })
    }

    /// Returns the number of sequences that an element of `lens` cells becomes, and counts drops and splits.
    ///
    /// Each sequence is pushed with the lengths that [`OverLong::Split`] gives it.
    /// # Errors
    /// `Data` if a feature is over-long and can be neither split nor dropped.
    #[inline]
    pub fn pieces(&mut self, lens: &[usize]) -> Result<usize> {
        let pieces = pieces(&self.features, lens, self.options.over_long)?;
        if pieces != 1 {
            self.stats.count_uneven(&self.features, lens, pieces);
        }
        Ok(pieces)
    }

    /// Returns true if no sequence is waiting.
    pub(crate) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Returns true if a row must be taken before the next push.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.held.is_full()
    }

    /// Adds the next sequence and returns its ordinal; `None` if the sequence is already in a row of a restored state.
    ///
    /// # Errors
    /// `Data` if the sequence is longer than a row or has a wrong number of features. `Config` if the window is full.
    #[inline]
    pub fn push(&mut self, lens: &[usize]) -> Result<Option<u64>> {
        if self.is_full() || lens.len() != self.features.len() {
            return Err(self.refuse(lens.len()));
        }
        let slot = self.held.next_slot();
        let mut tokens = 0u64;
        for ((need, feature), &len) in self.slots.needs_mut(slot).iter_mut().zip(&self.features).zip(lens) {
            if len > feature.length {
                return Err(over_long(feature, len));
            }
            *need = feature.aligned(len).min(feature.length) as u32;
            tokens += if feature.meta { 0 } else { len as u64 };
        }
        self.slots.set_tokens(slot, tokens);
        let Some(ordinal) = self.held.push() else { return Ok(None) };
        self.append(slot);
        Ok(Some(ordinal))
    }

    #[cold]
    fn refuse(&self, features: usize) -> Error {
        if features != self.features.len() {
            return Error::data(format!("an element has {features} features, but {} are packed", self.features.len()));
        }
        Error::config(format!("the window of {} sequences is full", self.options.window))
    }

    #[inline]
    fn append(&mut self, slot: usize) {
        let length = self.slots.needs(slot)[self.key] as usize;
        self.slots.set_behind(slot, NONE);
        let (first, last) = &mut self.ends[length];
        if *first == NONE {
            *first = slot as u32;
            self.present.insert(length);
        } else {
            self.slots.set_behind(*last as usize, slot as u32);
        }
        *last = slot as u32;
    }

    /// Returns the ordinals of the next row, beginning with the oldest sequence.
    ///
    /// Returns `None` if no sequence is left, or the window is not full and `ended` is false.
    #[inline]
    pub fn next_row(&mut self, ended: bool) -> Option<&[u64]> {
        if self.held.is_empty() || !(ended || self.is_full()) {
            return None;
        }
        self.row.clear();
        self.gaps.clear();
        self.gaps.extend(self.features.iter().map(|f| f.length as u32));
        // The oldest sequence is the first of its length, because all others of equal length are younger.
        let oldest = self.held.oldest_slot();
        let mut tokens = self.take(oldest);
        let most = self.options.max_sequences.unwrap_or(usize::MAX);
        while self.row.len() < most
            && let Some(slot) = self.longest_that_fits()
        {
            if let Some([long, short]) = self.closing_pair(slot, most) {
                tokens += self.take(long) + self.take(short);
                break;
            }
            tokens += self.take(slot);
        }
        self.held.advance();
        self.stats.rows += 1;
        self.stats.sequences += self.row.len() as u64;
        self.stats.tokens += tokens;
        self.stats.padding += self.row_cells - tokens;
        Some(&self.row)
    }

    #[inline]
    fn longest_that_fits(&self) -> Option<usize> {
        let mut length = self.present.prev(self.gaps[self.key] as usize)?;
        if self.features.len() == 1 {
            return Some(self.ends[length].0 as usize);
        }
        for _ in 0..PROBES {
            let slot = self.ends[length].0 as usize;
            if self.slots.needs(slot).iter().zip(&self.gaps).all(|(need, gap)| need <= gap) {
                return Some(slot);
            }
            length = self.present.prev(length.checked_sub(1)?)?;
        }
        None
    }

    /// Returns two sequences that together fill the gap better than `slot` alone.
    ///
    /// Returns `None` if another sequence would still fit after `slot`, no pair is better, or there are several features.
    #[inline]
    fn closing_pair(&self, slot: usize, most: usize) -> Option<[usize; 2]> {
        let (gap, alone) = (self.gaps[self.key] as usize, self.slots.needs(slot)[self.key] as usize);
        let shortest = self.present.next(0)?;
        if self.features.len() > 1 || alone == gap || gap - alone >= shortest || self.row.len() + 2 > most {
            return None;
        }
        self.best_pair(gap, alone, shortest)
    }

    /// Returns the pair with the largest sum of lengths above `alone` and up to `gap`.
    ///
    /// Tries the longer length of the pair from the longest down.
    fn best_pair(&self, gap: usize, alone: usize, shortest: usize) -> Option<[usize; 2]> {
        let (mut best, mut pair) = (alone, None);
        let mut long = self.present.prev(gap.checked_sub(shortest)?)?;
        for _ in 0..PAIRS {
            let alike = self.slots.behind(self.ends[long].0 as usize);
            let limit = if alike == NONE { long.checked_sub(1) } else { Some(long) };
            let Some(short) = limit.and_then(|limit| self.present.prev(limit.min(gap - long))) else { break };
            if long + short > best {
                best = long + short;
                let second = if short == long { alike } else { self.ends[short].0 };
                pair = Some([self.ends[long].0 as usize, second as usize]);
            }
            if best == gap || 2 * long <= best {
                break;
            }
            let Some(next) = long.checked_sub(1).and_then(|below| self.present.prev(below)) else { break };
            long = next;
        }
        pair
    }

    /// Moves the first sequence of its length into the row and returns its number of tokens.
    #[inline]
    fn take(&mut self, slot: usize) -> u64 {
        let needs = self.slots.needs(slot);
        let length = needs[self.key] as usize;
        for (gap, need) in self.gaps.iter_mut().zip(needs) {
            *gap -= need;
        }
        let first = self.slots.behind(slot);
        self.ends[length].0 = first;
        if first == NONE {
            self.present.remove(length);
        }
        self.row.push(self.held.take(slot));
        self.slots.tokens(slot)
    }

    /// Returns the position for a later restore.
    pub fn state(&self) -> HeldState {
        self.held.state()
    }

    /// Restores `state`. The caller pushes the sequences from its oldest ordinal on again.
    ///
    /// # Errors
    /// `State` if the state does not fit a window of this size.
    pub fn restore(&mut self, state: &HeldState) -> Result<()> {
        let stats = self.stats;
        *self = Self::new(&self.features, self.options)?;
        self.stats = stats;
        self.held.restore(state)
    }

    /// Returns the ordinal of the oldest sequence that is not in a row. Earlier sequences can be dropped.
    pub fn oldest(&self) -> u64 {
        self.held.oldest()
    }

    /// Returns counts of all rows so far.
    pub fn stats(&self) -> PackStats {
        self.stats
    }
}

/// Fields of each slot, side by side.
///
/// Word 0 is the slot of the next younger sequence of equal length. Words 1 and 2 are the tokens, low half first.
/// The other words are the cells that each feature takes. `u32` suffices, because a window has at most 2^24 slots
/// and a row fewer than 2^31 cells. Half as much memory stays in the nearest cache twice as long.
#[derive(Debug)]
struct Slots {
    words: Vec<u32>,
    stride: usize,
}

impl Slots {
    /// Number of words before the cells of the features.
    const HEAD: usize = 3;

    fn new(slots: usize, features: usize) -> Self {
        let stride = Self::HEAD + features;
        Self { words: vec![0; slots * stride], stride }
    }

    #[inline]
    fn behind(&self, slot: usize) -> u32 {
        self.words[slot * self.stride]
    }

    #[inline]
    fn set_behind(&mut self, slot: usize, behind: u32) {
        self.words[slot * self.stride] = behind;
    }

    #[inline]
    fn tokens(&self, slot: usize) -> u64 {
        let at = slot * self.stride;
        u64::from(self.words[at + 2]) << 32 | u64::from(self.words[at + 1])
    }

    #[inline]
    fn set_tokens(&mut self, slot: usize, tokens: u64) {
        let at = slot * self.stride;
        self.words[at + 2] = (tokens >> 32) as u32;
        self.words[at + 1] = tokens as u32;
    }

    #[inline]
    fn needs(&self, slot: usize) -> &[u32] {
        &self.words[slot * self.stride + Self::HEAD..(slot + 1) * self.stride]
    }

    #[inline]
    fn needs_mut(&mut self, slot: usize) -> &mut [u32] {
        &mut self.words[slot * self.stride + Self::HEAD..(slot + 1) * self.stride]
    }
}

/// Absence of a slot.
const NONE: u32 = u32::MAX;
/// Maximum number of lengths to try for a sequence of several features.
const PROBES: usize = 64;
/// Maximum number of longer halves to try for the pair that closes a row.
const PAIRS: usize = 32;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn packer(features: &[Feature], window: usize, max_sequences: Option<usize>) -> WindowPacker {
        WindowPacker::new(features, WindowOptions { window, max_sequences, over_long: OverLong::Error }).unwrap()
    }

    /// Returns all rows of `lens`. Replaces the packer by a restored copy after each row if `resume` returns true.
    fn rows(mut packer: WindowPacker, lens: &[Vec<usize>], mut resume: impl FnMut() -> bool) -> Vec<Vec<u64>> {
        let (mut rows, mut at) = (Vec::new(), 0);
        loop {
            while at < lens.len() && !packer.is_full() {
                packer.push(&lens[at]).unwrap();
                at += 1;
            }
            let Some(row) = packer.next_row(at == lens.len()) else { return rows };
            rows.push(row.to_vec());
            if resume() {
                let state = packer.state();
                let mut other = WindowPacker::new(&packer.features, packer.options).unwrap();
                other.restore(&state).unwrap();
                assert_eq!(other.state(), state);
                at = state.oldest as usize;
                packer = other;
            }
        }
    }

    /// Naive twin over a list: scans for the longest sequence that fits and for the closing pair.
    /// Ties go to the oldest sequence.
    fn naive(feature: &Feature, window: usize, most: usize, lens: &[usize]) -> Vec<Vec<u64>> {
        let (mut held, mut rows) = ((0..lens.len()).collect::<Vec<_>>(), Vec::new());
        let need = |at: usize| feature.aligned(lens[at]).min(feature.length);
        while let Some(&oldest) = held.first() {
            let mut row = vec![oldest];
            while row.len() < most {
                let gap = feature.length - row.iter().map(|&at| need(at)).sum::<usize>();
                let ahead: Vec<usize> =
                    held.iter().copied().filter(|at| *at < oldest + window && !row.contains(at)).collect();
                let fits = ahead.iter().copied().filter(|&at| need(at) <= gap);
                let Some(longest) = fits.rev().max_by_key(|&at| need(at)) else { break };
                let shortest = ahead.iter().map(|&at| need(at)).min().unwrap();
                if gap - need(longest) < shortest && row.len() + 2 <= most {
                    let pairs = ahead.iter().flat_map(|&long| ahead.iter().map(move |&short| (long, short)));
                    let pairs = pairs.filter(|&(long, short)| {
                        long != short && (need(long), short) >= (need(short), long) && need(long) + need(short) <= gap
                    });
                    let best = |&(long, short): &(usize, usize)| {
                        (need(long) + need(short), need(long), usize::MAX - long, usize::MAX - short)
                    };
                    if let Some((long, short)) =
                        pairs.max_by_key(best).filter(|&(l, s)| need(l) + need(s) > need(longest))
                    {
                        row.extend([long, short]);
                        break;
                    }
                }
                row.push(longest);
            }
            held.retain(|at| !row.contains(at));
            rows.push(row.into_iter().map(|at| at as u64).collect());
        }
        rows
    }

    proptest! {
        #[test]
        fn rows_are_those_of_the_naive_planner_and_survive_resumes(
            window in 1usize..40,
            most in prop::option::of(1usize..5),
            align in 1usize..40,
            lens in prop::collection::vec(0usize..34, 0..150),
            resume in prop::collection::vec(any::<bool>(), 1..20),
        ) {
            let features = [Feature { align, ..Feature::new("a", 33) }];
            let want = naive(&features[0], window, most.unwrap_or(usize::MAX), &lens);
            let lens: Vec<_> = lens.into_iter().map(|len| vec![len]).collect();
            prop_assert_eq!(&rows(packer(&features, window, most), &lens, || false), &want);
            let mut resume = resume.into_iter().cycle();
            prop_assert_eq!(&rows(packer(&features, window, most), &lens, || resume.next().unwrap()), &want);
            prop_assert!(want.windows(2).all(|rows| rows[0][0] < rows[1][0]), "rows go by their oldest");
            prop_assert!(want.iter().all(|row| row.iter().all(|&at| at < row[0] + window as u64)));
        }

        #[test]
        fn several_features_fit_and_every_sequence_is_in_one_row(
            lens in prop::collection::vec((0usize..30, 0usize..12), 0..100),
        ) {
            let features = [Feature::new("a", 33), Feature::new("b", 12)];
            let lens: Vec<_> = lens.into_iter().map(|(a, b)| vec![a, b]).collect();
            let rows = rows(packer(&features, 16, None), &lens, || false);
            for row in &rows {
                for f in 0..2 {
                    prop_assert!(row.iter().map(|&at| lens[at as usize][f]).sum::<usize>() <= features[f].length);
                }
            }
            let mut all: Vec<u64> = rows.into_iter().flatten().collect();
            all.sort();
            prop_assert_eq!(all, (0..lens.len() as u64).collect::<Vec<_>>());
        }
    }

    #[test]
    fn cells_of_meta_features_are_no_tokens_and_no_padding() {
        let features = [Feature { meta: true, ..Feature::new("m", 8) }, Feature::new("a", 6), Feature::new("b", 4)];
        let mut packer = packer(&features, 2, None);
        packer.push(&[5, 3, 2]).unwrap();
        packer.push(&[1, 2, 1]).unwrap();
        assert_eq!(packer.next_row(true), Some(&[0, 1][..]));
        let stats = packer.stats();
        assert_eq!((stats.tokens, stats.padding, stats.sequences, stats.rows), (8, 2, 2, 1));
    }

    #[test]
    fn nonsense_is_refused() {
        let features = [Feature::new("a", 4)];
        assert!(WindowPacker::new(&features, WindowOptions { window: 0, ..WindowOptions::default() }).is_err());
        let mut one = packer(&features, 1, None);
        assert!(one.push(&[5]).unwrap_err().message().contains("has 5 cells, a row takes 4"));
        assert!(one.push(&[]).is_err());
        one.push(&[4]).unwrap();
        assert!(one.push(&[4]).unwrap_err().message().contains("full"));
    }
}
