//! Statistics of the cells of batches: lengths of sequences, and padding.

use std::time::{Duration, Instant};

use super::format::{count, percent};
use super::html::{Chart, Line, Scale};
use super::tokens::{TokenCount, arrays, is_segment_ids};
use crate::Element;
use crate::units::grouped;

/// Number of classes of sequence lengths; the longest length doubles from class to class.
const DOUBLINGS: usize = 33;
/// Scale of shares.
const SHARES: [(f64, &str); 3] = [(0.0, "0"), (0.5, "50 %"), (1.0, "100 %")];
/// Minimum number of stretches kept of a long run. At twice this number, neighbours are merged in pairs.
const STRETCHES: usize = 240;

/// Time budget for looks at batches: this duration, plus the run's duration divided by [`SHARE`].
const AT_FIRST: Duration = Duration::from_millis(10);
const SHARE: u32 = 500;

/// Statistics of the cells of a run's batches, in bounded memory. They cover all batches, or a sample if looking at all batches
/// exceeds the time budget.
#[derive(Clone, Debug)]
pub(crate) struct Cells {
    /// Number of sequences by length: 1, 2, 3 to 4, 5 to 8, and so on.
    sequences: [u64; DOUBLINGS],
    /// Tokens of all sequences.
    tokens: u64,
    /// Batches per stretch. Stretches begin at the first batch of the run.
    each: u64,
    stretches: Vec<TokenCount>,
    /// Number of the first batch of the run.
    first: Option<u64>,
    /// Time of the first look at a batch, and total duration of all looks.
    began: Option<Instant>,
    spent: Duration,
}

impl Default for Cells {
    fn default() -> Self {
        Self {
            sequences: [0; DOUBLINGS],
            tokens: 0,
            each: 1,
            stretches: Vec::new(),
            first: None,
            began: None,
            spent: Duration::ZERO,
        }
    }
}

impl Cells {
    /// Looks at the batch with this number, if the time budget permits. `brought` holds its tokens and cells if they are already known.
    pub(crate) fn look(&mut self, number: u64, batch: &Element, brought: Option<TokenCount>) {
        self.look_by(Instant::now, number, batch, brought);
    }

    /// Looks at a batch as [`look`](Self::look) does, with the clock `now`.
    fn look_by(&mut self, now: impl Fn() -> Instant, number: u64, batch: &Element, brought: Option<TokenCount>) {
        let start = now();
        let began = *self.began.get_or_insert(start);
        if self.spent <= AT_FIRST + (start - began) / SHARE {
            self.add_sequences(batch);
            let brought = brought.unwrap_or_else(|| TokenCount::of(batch));
            self.add_stretch(number, brought);
            self.spent += now() - start;
        } else if let Some(brought) = brought {
            self.add_stretch(number, brought);
        }
    }

    fn add_sequences(&mut self, batch: &Element) {
        for (name, array) in arrays(batch) {
            let Ok(values) = array.as_slice::<i32>() else { continue };
            if is_segment_ids(name) {
                let width = array.shape().last().copied().unwrap_or(0).max(1);
                values.chunks(width).for_each(|row| self.add_row(row));
            } else if name.ends_with("_lengths") {
                values.iter().for_each(|length| self.add_sequence(u64::from(length.max(&0).unsigned_abs())));
            }
        }
    }

    /// Adds the segments of a row: runs of equal ids other than 0.
    fn add_row(&mut self, ids: &[i32]) {
        ids.chunk_by(|a, b| a == b).filter(|ids| ids[0] != 0).for_each(|ids| self.add_sequence(ids.len() as u64));
    }

    fn add_sequence(&mut self, length: u64) {
        if length > 0 {
            let doubling = length.next_power_of_two().trailing_zeros() as usize;
            self.sequences[doubling.min(DOUBLINGS - 1)] += 1;
            self.tokens += length;
        }
    }

    fn add_stretch(&mut self, number: u64, brought: TokenCount) {
        let number = number.saturating_sub(*self.first.get_or_insert(number));
        while number / self.each >= 2 * STRETCHES as u64 {
            let pair = |pair: &[TokenCount]| pair.iter().copied().fold(TokenCount::default(), TokenCount::with);
            self.stretches = self.stretches.chunks(2).map(pair).collect();
            self.each *= 2;
        }
        let at = (number / self.each) as usize;
        if self.stretches.len() <= at {
            self.stretches.resize(at + 1, TokenCount::default());
        }
        self.stretches[at] = self.stretches[at].with(brought);
    }

    /// Returns charts of the statistics, each with its heading; none if the batches had no cells.
    pub(super) fn charts(&self) -> Vec<(&'static str, Chart)> {
        let mut charts = Vec::new();
        if self.sequences.iter().any(|count| *count > 0) {
            charts.push(("Sequences by length", self.lengths()));
        }
        if self.stretches.iter().any(|stretch| stretch.cells > stretch.real) {
            charts.push(("Padding of the batches", self.padding()));
        }
        charts
    }

    fn lengths(&self) -> Chart {
        let is_there = |count: &u64| *count > 0;
        let first = self.sequences.iter().position(is_there).unwrap_or(0);
        let last = self.sequences.iter().rposition(is_there).unwrap_or(0);
        let shown = &self.sequences[first..=last];
        let most = shown.iter().copied().max().unwrap_or(1).max(1) as f64;
        let scale = Scale::to(most);
        let heights: Vec<f64> = shown.iter().map(|count| scale.at(*count as f64)).collect();
        let all: u64 = shown.iter().sum();
        let sequences = if all == 1 { "sequence" } else { "sequences" };
        let detail = format!("{} {sequences} · mean {}", grouped(all), count(self.tokens as f64 / all.max(1) as f64));
        let mut chart = Chart::default();
        chart.line(Line::new("sequences", detail).high(110).scale(scale.ticks(count)).columns("ready", &heights));
        let name = |doubling: usize| match doubling {
            0 => "1".to_owned(),
            1 => "2".to_owned(),
            _ => format!("{}–{}", (1_u64 << (doubling - 1)) + 1, 1_u64 << doubling),
        };
        // If there are more than 9 classes, every other class is named.
        let step = if shown.len() > 9 { 2 } else { 1 };
        let middle = |at: usize| (at as f64 + 0.5) / shown.len() as f64;
        let ticks = (0..shown.len()).step_by(step).map(|at| (middle(at), name(first + at)));
        chart.axis(&ticks.collect::<Vec<_>>(), "tokens of a sequence");
        chart
    }

    fn padding(&self) -> Chart {
        // A stretch without data repeats the share of the stretch before.
        let mut before = 1.0;
        let share = |stretch: &TokenCount| {
            before = stretch.share().unwrap_or(before);
            before
        };
        let shares: Vec<f64> = self.stretches.iter().map(share).collect();
        let worst = shares.iter().copied().fold(1.0, f64::min);
        let (real, cells) = self.stretches.iter().fold((0, 0), |(r, c), part| (r + part.real, c + part.cells));
        let padding = 1.0 - real as f64 / (cells.max(1)) as f64;
        let what = if self.each == 1 { "batch".to_owned() } else { format!("{} batches", grouped(self.each)) };
        let detail = format!("{} of all cells · {} in the worst {what}", percent(padding), percent(1.0 - worst));
        let mut chart = Chart::default();
        let all = vec![1.0; shares.len()];
        chart.line(
            Line::new("cells", detail)
                .high(60)
                .scale(SHARES.map(|(place, text)| (place, text.to_owned())).to_vec())
                .bars("queue", &all)
                .bars("ready", &shares),
        );
        let scale = Scale::exactly(shares.len() as f64 * self.each as f64);
        chart.axis(&scale.ticks(count), "batch");
        chart.legend(&[("ready", "tokens"), ("queue", "padding")]);
        chart
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Array, Buffer, DType};

    fn batch(name: &str, values: Vec<i32>, rows: usize) -> Element {
        let width = values.len() / rows;
        let ids = Array::new(DType::I32, &[rows, width], Buffer::from_vec(values)).unwrap();
        Element::new().with(name, ids)
    }

    #[test]
    fn segments_are_counted_by_their_lengths() {
        let (start, mut cells) = (Instant::now(), Cells::default());
        let ids = vec![1, 1, 1, 2, 0, 0, 1, 1, 2, 2, 2, 2];
        cells.look_by(|| start, 0, &batch("tokens_segment_ids", ids, 2), None);
        // Sequences of lengths 1, 2, 3 and 4.
        assert_eq!((cells.sequences[..4].to_vec(), cells.tokens), (vec![1, 1, 2, 0], 10));
        cells.look_by(
            || start,
            1,
            &batch("tokens_lengths", vec![5, 0, 8], 3),
            Some(TokenCount { real: 13, cells: 24 }),
        );
        assert_eq!((cells.sequences[3], cells.tokens), (2, 23));
        let names: Vec<&str> = cells.charts().iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["Sequences by length", "Padding of the batches"]);
        assert!(Cells::default().charts().is_empty());
    }

    #[test]
    fn a_run_of_any_length_is_a_few_stretches_and_none_is_lost() {
        let (start, mut cells) = (Instant::now(), Cells::default());
        let (empty, batches) = (Element::new(), 10_007);
        for number in 0..batches {
            cells.look_by(|| start, number, &empty, Some(TokenCount { real: 3, cells: 4 }));
        }
        assert!((STRETCHES..=2 * STRETCHES).contains(&cells.stretches.len()), "{}", cells.stretches.len());
        assert_eq!(cells.stretches.iter().map(|stretch| stretch.cells).sum::<u64>(), 4 * batches);
        let (last, whole) = cells.stretches.split_last().unwrap();
        assert!(whole.iter().all(|stretch| stretch.cells == 4 * cells.each));
        assert_eq!(last.cells, 4 * (batches - whole.len() as u64 * cells.each));
    }

    #[test]
    fn looks_take_10_ms_and_one_part_in_500_of_the_run() {
        let (start, mut cells, ticks) = (Instant::now(), Cells::default(), std::cell::Cell::new(0));
        // Each look takes 6 ms.
        let mut look = |at: Duration| {
            ticks.set(0);
            let now = || start + at + Duration::from_millis(6) * ticks.replace(1);
            let before = cells.tokens;
            cells.look_by(now, 0, &batch("tokens_segment_ids", vec![1, 1], 1), None);
            cells.tokens > before
        };
        let s = Duration::from_secs;
        assert_eq!(
            [s(0), s(0), s(0), s(1), s(2), s(4), s(5)].map(&mut look),
            [true, true, false, true, false, true, false]
        );
    }

    #[test]
    fn what_takes_too_long_is_a_sample() {
        let start = Instant::now();
        let mut cells = Cells { spent: AT_FIRST + Duration::from_secs(1), ..Cells::default() };
        let segments = batch("tokens_segment_ids", vec![1, 1, 0, 0], 1);
        cells.look_by(|| start, 0, &segments, None);
        assert!(cells.charts().is_empty());
        // Counts that are already known are added at no cost.
        cells.look_by(|| start, 1, &segments, Some(TokenCount { real: 2, cells: 4 }));
        let names: Vec<&str> = cells.charts().iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["Padding of the batches"]);
    }
}
