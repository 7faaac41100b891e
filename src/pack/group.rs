//! Packing into a group of bins by first fit or best fit, as in Grain.

use super::bins::{Bins, Fit, scan};
use super::feature::{self, Feature, OverLong, measure, piece_range, pieces};
use super::stats::PackStats;
use super::writer::{Group, RowWriter};
use crate::error::{Error, Result};

/// Maximum number of bins in a group, well above practical use.
const MOST_BINS: usize = 1 << 24;

/// Options of a [`GroupPacker`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupOptions {
    /// Number of bins in a group.
    pub bins: usize,
    /// Rule that chooses a bin.
    pub fit: Fit,
    /// Maximum number of sequences in a bin.
    pub max_sequences: Option<usize>,
    /// Policy for a sequence that is longer than a row.
    pub over_long: OverLong,
}

impl GroupOptions {
    /// Creates options for `bins` bins: first fit, any number of sequences per bin, over-long sequences are an error.
    pub fn new(bins: usize) -> Self {
        Self { bins, fit: Fit::First, max_sequences: None, over_long: OverLong::Error }
    }
}

/// Result of a push into a [`GroupPacker`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placed {
    /// The sequence went into this bin.
    Bin(usize),
    /// No bin has room. Take the group with [`GroupPacker::finish`], then push the sequence again.
    Full,
}

/// Packer of sequences into the bins of a group.
///
/// If a sequence fits in no bin, the group is yielded, and the next group begins with this sequence.
/// Values, segment ids and positions are written directly into the rows. Unwritten cells are padded at the end of a group.
/// Nothing is allocated while a group fills. Its memory is reused after all views of its rows are dropped.
///
/// # Cost
/// With a single feature, first fit takes `O(log bins)` and best fit `O(log64 (bins * length))`, plus the copy.
/// Several features take `O(bins)`, because room in one feature implies nothing about another. Holds one group.
/// # Source
/// First fit and best fit: D. S. Johnson, *Near-optimal bin packing algorithms*, 1973.
/// The order of sequences, rows and groups is as in Grain's `FirstFitPackIterDataset` and `BestFitPackIterDataset`.
#[derive(Debug)]
pub struct GroupPacker {
    options: GroupOptions,
    writer: RowWriter,
    /// Search over free space for a single feature; `None` if there are several features, which are scanned.
    search: Option<Bins>,
    lengths: Vec<usize>,
    lens: Vec<usize>,
    /// Cells of the current piece, per feature, without the alignment gap. The end of the row may cut off that gap.
    needs: Vec<usize>,
    /// Counts of split and dropped elements.
    uneven: PackStats,
}

impl GroupPacker {
    /// Creates a packer with an empty group.
    ///
    /// # Errors
    /// `Config` if `bins` is 0 or above 2^24, or `max_sequences` is 0.
    /// `Config` if a feature is invalid, or the rows do not fit in memory.
    pub fn new(features: &[Feature], options: GroupOptions) -> Result<Self> {
        feature::check(features)?;
        let GroupOptions { bins, fit, max_sequences, .. } = options;
        if bins == 0 || bins > MOST_BINS {
            return Err(Error::config(format!("packing into {bins} bins, and there can be 1 to {MOST_BINS}")));
        }
        if max_sequences == Some(0) {
            return Err(Error::config("at most 0 sequences in a bin leave no room for any"));
        }
        let search = if let [only] = features { Some(Bins::new(fit, bins, only.length)) } else { None };
        Ok(Self {
            writer: RowWriter::new(features, bins)?,
            options,
            search,
            lengths: features.iter().map(|f| f.length).collect(),
            lens: Vec::with_capacity(features.len()),
            needs: Vec::with_capacity(features.len()),
            uneven: PackStats::default(),
        })
    }

    /// Returns the number of sequences that `element` becomes: usually 1, 0 if it is dropped, more if it is split.
    ///
    /// Counts the drop or split in the statistics if `first` is true.
    /// # Errors
    /// `Data` if a feature is not a whole number of cells, or is over-long and can be neither split nor dropped.
    #[inline]
    pub fn pieces(&mut self, element: &[&[u8]], first: bool) -> Result<usize> {
        let features = self.writer.features();
        measure(features, element, &mut self.lens)?;
        let pieces = pieces(features, &self.lens, self.options.over_long)?;
        if pieces != 1 && first {
            self.uneven.count_uneven(features, &self.lens, pieces);
        }
        Ok(pieces)
    }

    /// Packs an element that fits in a row. Calls [`push_piece`](Self::push_piece) for its only piece.
    ///
    /// # Errors
    /// `Data` as [`pieces`](Self::pieces).
    #[inline]
    pub fn push(&mut self, element: &[&[u8]]) -> Result<Placed> {
        self.push_piece(element, 0)
    }

    /// Packs piece `piece` of an element into a bin that has room.
    ///
    /// `element` holds a byte string per feature.
    /// # Errors
    /// `Data` if a feature is not a whole number of cells, or a meta feature is over-long.
    #[inline]
    pub fn push_piece(&mut self, element: &[&[u8]], piece: usize) -> Result<Placed> {
        let features = self.writer.features();
        measure(features, element, &mut self.lens)?;
        self.needs.clear();
        for (feature, &len) in features.iter().zip(&self.lens) {
            self.needs.push(piece_range(feature, len, piece).len());
        }
        let found = match &self.search {
            Some(search) => search.find(self.needs[0]),
            None => self.scan(),
        };
        let Some(bin) = found else { return self.no_room() };
        self.place(bin, element, piece)?;
        Ok(Placed::Bin(bin))
    }

    fn scan(&self) -> Option<usize> {
        let most = self.options.max_sequences.unwrap_or(usize::MAX);
        let (used, counts) = (self.writer.used(), self.writer.counts());
        scan(self.options.fit, used, &self.needs, &self.lengths, |bin| counts[bin] < most)
    }

    /// Returns [`Placed::Full`], or an error if the sequence would not fit in an empty group either.
    #[cold]
    fn no_room(&self) -> Result<Placed> {
        for (feature, &need) in self.writer.features().iter().zip(&self.needs) {
            if need > feature.length {
                return Err(feature::over_long(feature, need));
            }
        }
        Ok(Placed::Full)
    }

    #[inline]
    fn place(&mut self, bin: usize, element: &[&[u8]], piece: usize) -> Result<()> {
        self.writer.write(bin, element, piece)?;
        if let Some(search) = &mut self.search {
            let open = self.options.max_sequences.is_none_or(|most| self.writer.counts()[bin] < most);
            // The used cells may extend past the end of the row, which leaves no place for another sequence.
            let free = self.lengths[0].checked_sub(self.writer.used()[bin]);
            search.set(bin, free.filter(|_| open));
        }
        Ok(())
    }

    /// Returns true if the open group has no sequences.
    pub fn is_empty(&self) -> bool {
        self.writer.is_empty()
    }

    /// Closes and returns the group, and begins the next; `None` if the group is empty.
    pub fn finish(&mut self) -> Option<Group> {
        let group = self.writer.finish()?;
        if let Some(search) = &mut self.search {
            search.reset();
        }
        Some(group)
    }

    /// Returns counts of the groups returned so far, and of all split and dropped elements.
    pub fn stats(&self) -> PackStats {
        let PackStats { splits, dropped, dropped_tokens, .. } = self.uneven;
        PackStats { splits, dropped, dropped_tokens, ..self.writer.stats() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::arena::Part;
    use super::*;

    /// A row of a feature: values, segment ids, positions.
    type Row = [Vec<i32>; 3];

    fn rows(group: &Group, feature: usize) -> Vec<Row> {
        let row = |row| {
            [Part::Values, Part::SegmentIds, Part::Positions]
                .map(|part| group.arena.row_i32(feature, part, row).to_vec())
        };
        group.rows.clone().map(row).collect()
    }

    /// Returns elements with tokens numbered consecutively across all features.
    fn elements(lens: &[Vec<usize>]) -> Vec<Vec<Vec<i32>>> {
        let mut token = 0;
        let mut sequence = |len: &usize| {
            token += *len as i32;
            (token - *len as i32 + 1..=token).collect()
        };
        lens.iter().map(|lens| lens.iter().map(&mut sequence).collect()).collect()
    }

    fn pack(features: &[Feature], options: GroupOptions, lens: &[Vec<usize>]) -> (Vec<Vec<Row>>, PackStats) {
        let mut packer = GroupPacker::new(features, options).unwrap();
        let mut out = vec![Vec::new(); features.len()];
        let mut put_out = |group: Group| {
            for (f, out) in out.iter_mut().enumerate() {
                out.extend(rows(&group, f));
            }
        };
        for element in elements(lens) {
            let element: Vec<&[u8]> = element.iter().map(|tokens| bytemuck::cast_slice(tokens)).collect();
            for piece in 0..packer.pieces(&element, true).unwrap() {
                if packer.push_piece(&element, piece).unwrap() == Placed::Full {
                    put_out(packer.finish().unwrap());
                    assert_eq!(packer.push_piece(&element, piece).unwrap(), Placed::Bin(0));
                }
            }
        }
        packer.finish().into_iter().for_each(&mut put_out);
        assert!(packer.finish().is_none());
        (out, packer.stats())
    }

    /// Naive twin of `pack` over lists of sequences: scans the bins, and lays out rows at the end.
    fn naive(features: &[Feature], options: GroupOptions, lens: &[Vec<usize>]) -> Vec<Vec<Row>> {
        let used = |bin: &[Vec<Vec<i32>>], f: usize| bin.iter().map(|e| features[f].aligned(e[f].len())).sum::<usize>();
        let (mut groups, mut bins) = (Vec::new(), vec![Vec::new(); options.bins]);
        for element in elements(lens) {
            let fits = |bin: &Vec<Vec<Vec<i32>>>| {
                bin.len() < options.max_sequences.unwrap_or(usize::MAX)
                    && (0..features.len()).all(|f| used(bin, f) + element[f].len() <= features[f].length)
            };
            let candidates: Vec<usize> = (0..options.bins).filter(|&bin| fits(&bins[bin])).collect();
            let fill = |bin: usize| (0..features.len()).map(|f| used(&bins[bin], f)).sum::<usize>();
            let chosen = match options.fit {
                Fit::First => candidates.first().copied(),
                Fit::Best => candidates.iter().rev().copied().max_by_key(|&bin| fill(bin)),
            };
            let chosen = chosen.unwrap_or_else(|| {
                groups.push(std::mem::replace(&mut bins, vec![Vec::new(); options.bins]));
                0
            });
            bins[chosen].push(element);
        }
        groups.push(bins);
        let bins: Vec<_> = groups.into_iter().flatten().filter(|bin| !bin.is_empty()).collect();
        (0..features.len()).map(|f| bins.iter().map(|bin| lay_out(&features[f], f, bin)).collect()).collect()
    }

    fn lay_out(feature: &Feature, f: usize, bin: &[Vec<Vec<i32>>]) -> Row {
        let padding = if feature.padding.is_empty() { 0 } else { bytemuck::pod_read_unaligned(&feature.padding) };
        let mut row = [vec![padding; feature.length], vec![0; feature.length], vec![0; feature.length]];
        let mut at = 0;
        for (segment, element) in (1..).zip(bin) {
            for (position, &token) in element[f].iter().enumerate() {
                row[0][at + position] = token;
                row[1][at + position] = segment;
                row[2][at + position] = position as i32;
            }
            at += feature.aligned(element[f].len());
        }
        row
    }

    #[test]
    fn rows_for_which_there_is_no_memory_are_an_error() {
        let mut packer = GroupPacker::new(&[Feature::new("a", i32::MAX as usize)], GroupOptions::new(1 << 12)).unwrap();
        let error = packer.push(&[&[1, 0, 0, 0]]).unwrap_err();
        assert!(error.message().ends_with(" of memory for one array"), "{error}");
        let error = GroupPacker::new(&[Feature::new("a", 4)], GroupOptions::new(1 << 40)).unwrap_err();
        assert_eq!(error.message(), "packing into 1099511627776 bins, and there can be 1 to 16777216");
    }

    proptest! {
        #[test]
        fn rows_are_those_of_the_naive_packer(
            fit in prop_oneof![Just(Fit::First), Just(Fit::Best)],
            bins in 1usize..9,
            max_sequences in prop::option::of(1usize..5),
            shape in prop::collection::vec((5usize..40, 1usize..9, any::<bool>()), 1..4),
            raw in prop::collection::vec(prop::collection::vec(any::<prop::sample::Index>(), 3), 0..80),
        ) {
            let feature = |(f, (length, align, padded)): (usize, (usize, usize, bool))| Feature {
                align,
                padding: if padded { vec![255; 4] } else { Vec::new() },
                ..Feature::new(f.to_string(), length)
            };
            let features: Vec<_> = shape.into_iter().enumerate().map(feature).collect();
            let lens: Vec<Vec<usize>> = raw
                .iter()
                .map(|raw| features.iter().zip(raw).map(|(f, raw)| raw.index(f.length + 1)).collect())
                .collect();
            let options = GroupOptions { fit, max_sequences, ..GroupOptions::new(bins) };
            let (packed, stats) = pack(&features, options, &lens);
            prop_assert_eq!(&packed, &naive(&features, options, &lens));
            let tokens: usize = lens.iter().flatten().sum();
            let cells: usize = features.iter().map(|f| f.length).sum::<usize>() * packed[0].len();
            prop_assert_eq!(stats.tokens, tokens as u64);
            prop_assert_eq!(stats.padding, (cells - tokens) as u64);
            prop_assert_eq!((stats.sequences, stats.rows), (lens.len() as u64, packed[0].len() as u64));
        }
    }

    #[test]
    fn an_alignment_that_does_not_divide_the_row_moves_only_the_starts() {
        // As packed by Grain.
        let features = [Feature { align: 4, ..Feature::new("a", 6) }];
        let ids = |lens: &[usize], fit| {
            let lens: Vec<_> = lens.iter().map(|len| vec![*len]).collect();
            let (rows, _) = pack(&features, GroupOptions { fit, ..GroupOptions::new(2) }, &lens);
            rows[0].iter().map(|[_, ids, _]| ids.clone()).collect::<Vec<_>>()
        };
        for fit in [Fit::First, Fit::Best] {
            assert_eq!(ids(&[5, 2], fit), [[1, 1, 1, 1, 1, 0], [1, 1, 0, 0, 0, 0]]);
            assert_eq!(ids(&[3, 3, 2], fit), [[1, 1, 1, 0, 2, 2], [1, 1, 1, 0, 0, 0]]);
            // After the end of a row no sequence can start, not even a sequence of 0 cells.
            assert_eq!(ids(&[5, 0, 2], fit), [[1, 1, 1, 1, 1, 0], [2, 2, 0, 0, 0, 0]]);
        }
    }

    #[test]
    fn over_long_sequences_are_split_or_dropped_and_counted() {
        let features = [Feature::new("a", 4)];
        let lens = [vec![2], vec![9], vec![1]];
        let split = GroupOptions { over_long: OverLong::Split, ..GroupOptions::new(2) };
        let (rows, stats) = pack(&features, split, &lens);
        let values: Vec<_> = rows[0].iter().map(|row| row[0].clone()).collect();
        assert_eq!(values, [vec![1, 2, 0, 0], vec![3, 4, 5, 6], vec![7, 8, 9, 10], vec![11, 12, 0, 0]]);
        assert_eq!((stats.splits, stats.dropped, stats.sequences), (1, 0, 5));
        let (rows, stats) = pack(&features, GroupOptions { over_long: OverLong::Drop, ..split }, &lens);
        assert_eq!(rows[0], [[vec![1, 2, 12, 0], vec![1, 1, 2, 0], vec![0, 1, 0, 0]]]);
        assert_eq!((stats.splits, stats.dropped, stats.dropped_tokens), (0, 1, 9));
        let mut packer = GroupPacker::new(&features, GroupOptions::new(2)).unwrap();
        let error = packer.pieces(&[&[0; 20]], true).unwrap_err();
        assert!(error.message().contains("\"a\" has 5 cells, a row takes 4"), "{error}");
        assert!(packer.pieces(&[&[0; 6]], true).unwrap_err().message().contains("not a whole number of cells"));
        assert!(packer.pieces(&[], true).is_err());
    }

    #[test]
    fn meta_features_are_packed_without_marks() {
        let features = [Feature::new("a", 4), Feature { meta: true, cell: 1, ..Feature::new("m", 2) }];
        let mut packer = GroupPacker::new(&features, GroupOptions::new(1)).unwrap();
        packer.push(&[&[1; 8], &[7]]).unwrap();
        packer.push(&[&[2; 4], &[8]]).unwrap();
        assert_eq!(packer.push(&[&[3; 4], &[9]]).unwrap(), Placed::Full);
        let group = packer.finish().unwrap();
        assert_eq!(group.arena.row(1, Part::Values, 0), [7, 8]);
        assert!(group.arena.row(1, Part::SegmentIds, 0).is_empty());
        assert_eq!((packer.stats().tokens, packer.stats().padding), (3, 1));
    }

    #[test]
    fn nonsense_is_refused() {
        let features = [Feature::new("a", 4)];
        assert!(GroupPacker::new(&features, GroupOptions::new(0)).is_err());
        assert!(GroupPacker::new(&[], GroupOptions::new(1)).is_err());
        let none = GroupOptions { max_sequences: Some(0), ..GroupOptions::new(1) };
        assert!(GroupPacker::new(&features, none).is_err());
    }
}
