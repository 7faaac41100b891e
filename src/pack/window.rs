//! Best fit over a bounded look-ahead window.

use super::bit_tree::BitTree;
use super::feature::{self, Feature, OverLong, over_long, pieces};
use super::held::{Held, HeldState};
use super::stats::PackStats;
use crate::error::{Error, Result};

/// Rules by which a [`WindowPacker`] packs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowOptions {
    /// Sequences looked ahead: a row takes its sequences from this many consecutive ones.
    pub window: usize,
    /// The most sequences in one row.
    pub max_sequences: Option<usize>,
    /// Policy for a sequence longer than a row.
    pub over_long: OverLong,
}

impl Default for WindowOptions {
    /// 1,024 sequences ahead, any number in a row, over-long ones are an error.
    fn default() -> Self {
        Self { window: 1024, max_sequences: None, over_long: OverLong::Error }
    }
}

/// Plans rows: every row holds the oldest sequence of the window, then always the longest one that still fits; where
/// nothing would fit behind that, the two that together fill the gap best.
///
/// Planning is apart from writing: sequences are numbered as they are pushed (their ordinals), and a row is a list of
/// ordinals; the caller holds the sequences and writes them. The plan is a function of the lengths alone.
///
/// The window is a range of consecutive ordinals, so a sequence is put out before `window` more have been read, and
/// the [state](HeldState) needs only the first ordinal of the window and which of those behind it are in rows already.
///
/// With several features the length of the first that is not a meta feature is searched, and up to 64 lengths are
/// tried until all features fit.
///
/// # Cost
/// `O(log64 length)` per sequence, and up to 32 pairs of lengths per row; `O(window + length)` memory, some 16 bytes each.
/// # Source
/// Ours. The search by length is the counting sort of best-fit-decreasing in Ding et al., *Fewer truncations improve
/// language modeling*, 2024, kept up to date in place of done once.
#[derive(Debug)]
pub struct WindowPacker {
    features: Vec<Feature>,
    options: WindowOptions,
    /// The feature whose length is searched.
    key: usize,
    /// Per slot, side by side: see [`Slots`].
    slots: Slots,
    /// First and last slot of each length.
    ends: Vec<(u32, u32)>,
    /// Lengths that have sequences.
    present: BitTree,
    held: Held,
    row: Vec<u64>,
    gaps: Vec<u32>,
    row_cells: u64,
    stats: PackStats,
}

impl WindowPacker {
    /// An empty window.
    ///
    /// # Errors
    /// `Config` for a window of 0, at most 0 sequences in a row, or features that make no sense.
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

    /// Counts the sequences that an element of `lens` cells becomes; each is pushed with the lengths that
    /// [`OverLong::Split`] gives it. Counts what is dropped or split.
    ///
    /// # Errors
    /// `Data` naming the over-long feature where that is an error.
    #[inline]
    pub fn pieces(&mut self, lens: &[usize]) -> Result<usize> {
        let pieces = pieces(&self.features, lens, self.options.over_long)?;
        if pieces != 1 {
            self.stats.count_uneven(&self.features, lens, pieces);
        }
        Ok(pieces)
    }

    /// Whether no sequence waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Whether a row must be taken before the next sequence can be pushed.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.held.is_full()
    }

    /// Adds the next sequence, and says its ordinal; `None` if a restored state has it in a row already.
    ///
    /// # Errors
    /// `Data` if it is longer than a row, `Config` if the window is full.
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
            return Error::data(format!("an element of {features} features where {} are packed", self.features.len()));
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

    /// The ordinals of the next row, the oldest first; `None` if the window is not full and `ended` is false, or nothing is left.
    #[inline]
    pub fn next_row(&mut self, ended: bool) -> Option<&[u64]> {
        if self.held.is_empty() || !(ended || self.is_full()) {
            return None;
        }
        self.row.clear();
        self.gaps.clear();
        self.gaps.extend(self.features.iter().map(|f| f.length as u32));
        // The oldest sequence is the first of its length, as every other one of that length is younger.
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

    /// Two sequences that fill the gap better than `slot` alone, where nothing would fit behind that.
    #[inline]
    fn closing_pair(&self, slot: usize, most: usize) -> Option<[usize; 2]> {
        let (gap, alone) = (self.gaps[self.key] as usize, self.slots.needs(slot)[self.key] as usize);
        let shortest = self.present.next(0)?;
        if self.features.len() > 1 || alone == gap || gap - alone >= shortest || self.row.len() + 2 > most {
            return None;
        }
        self.best_pair(gap, alone, shortest)
    }

    /// The pair of lengths with the largest sum above `alone` and up to `gap`: the longer one is tried from the longest down.
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

    /// Moves the first sequence of its length into the row; its tokens.
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

    /// Takes the position, to go on from later.
    pub fn state(&self) -> HeldState {
        self.held.state()
    }

    /// Goes back to `state`: the sequences from its oldest on are to be pushed again.
    ///
    /// # Errors
    /// `State` if the state is not one of a window of this size.
    pub fn restore(&mut self, state: &HeldState) -> Result<()> {
        let stats = self.stats;
        *self = Self::new(&self.features, self.options)?;
        self.stats = stats;
        self.held.restore(state)
    }

    /// The oldest sequence that is in no row yet: what was before need not be held any more.
    pub fn oldest(&self) -> u64 {
        self.held.oldest()
    }

    /// Counts what was packed so far.
    pub fn stats(&self) -> PackStats {
        self.stats
    }
}

/// Facts about each sequence, side by side: the slot behind it among those of its length, the oldest first; its
/// tokens, in two halves; and the cells that each feature takes. A window has at most 2^24 slots and a row fewer cells than 2^31, and half as
/// much memory stays twice as long in the nearest cache.
#[derive(Debug)]
struct Slots {
    words: Vec<u32>,
    stride: usize,
}

impl Slots {
    /// Words in front of the cells of the features.
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

/// No slot.
const NONE: u32 = u32::MAX;
/// Lengths tried for a sequence of several features.
const PROBES: usize = 64;
/// Longer halves tried for the pair that closes a row.
const PAIRS: usize = 32;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn packer(features: &[Feature], window: usize, max_sequences: Option<usize>) -> WindowPacker {
        WindowPacker::new(features, WindowOptions { window, max_sequences, over_long: OverLong::Error }).unwrap()
    }

    /// All rows of `lens`; after each row the packer is replaced by one restored from its state if `resume` says so.
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

    /// The same from a list: scans for the longest that fits, the oldest among equals, and for the closing pair.
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
