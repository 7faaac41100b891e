//! Crops of pre-tokenised files, consecutive or random.

mod shape;

use self::shape::Shape;
use super::firsts::Firsts;
use super::tokens::Tokens;
use crate::cx::{Cx, StageId};
use crate::dataset::map::{BulkRead, GetStacked, MapDataset};
use crate::dataset::{Describe, INFINITE, Indices, Moves, Node, Stage, Upcoming};
use crate::element::Element;
use crate::error::{Error, Result};
use crate::rng::PhiloxKey;

/// Numbers the places of all files consecutively.
fn number(tokens: &Tokens, places: impl Fn(u64) -> u64) -> Firsts {
    // The total cannot overflow: it is at most the number of ids in the files.
    Firsts::of(tokens.files.iter().map(|file| places(file.len()))).unwrap_or_default()
}

impl Tokens {
    /// Returns consecutive crops of `seq_len` ids.
    pub fn crops(&self, seq_len: usize) -> Crops {
        Crops::new(self.clone(), seq_len)
    }

    /// Returns crops of `seq_len` ids at random positions. Crop `index` is a pure function of `seed` and `index`.
    pub fn random_crops(&self, seq_len: usize, seed: u32) -> RandomCrops {
        RandomCrops::new(self.clone(), seq_len, seed)
    }
}

/// Consecutive crops: see [`Tokens::crops`]. A [`MapDataset`] of elements `{tokens: i32[seq_len]}`.
///
/// Crop `i` of a file starts at id `i * seq_len`. Ids at the end of a file that do not fill a crop are not read;
/// [`left_over`](Self::left_over) returns their number.
#[must_use = "datasets are lazy and do nothing until read"]
#[derive(Clone)]
pub struct Crops {
    shape: Shape,
    firsts: Firsts,
}

impl Crops {
    fn new(tokens: Tokens, seq_len: usize) -> Self {
        Self { shape: Shape::new(tokens, seq_len), firsts: Firsts::default() }.numbered()
    }

    fn numbered(mut self) -> Self {
        let (seq_len, next) = (self.shape.seq_len as u64, u64::from(self.shape.with_next));
        let places = |ids: u64| ids.saturating_sub(next).checked_div(seq_len).unwrap_or(0);
        self.firsts = number(&self.shape.tokens, places);
        self
    }

    /// Extends each crop by the next id, to `seq_len + 1` ids, for inputs and targets. The next crop starts with this
    /// id. Default: `false`.
    pub fn with_next(mut self, with_next: bool) -> Self {
        self.shape.with_next = with_next;
        self.numbered()
    }

    /// Yields views of the mapped file, `u16` or `u32` as stored, instead of `i32` copies. Default: `false`.
    pub fn as_stored(mut self, as_stored: bool) -> Self {
        self.shape.as_stored = as_stored;
        self
    }

    /// Returns the number of ids that are in no crop.
    pub fn left_over(&self) -> u64 {
        self.shape.tokens.len() - self.firsts.len * self.shape.seq_len as u64
    }
}

impl Crops {
    /// Returns the file and the first id of crop `index`.
    #[inline]
    fn place(&self, index: u64) -> Result<(usize, u64)> {
        let (file, place) = self.firsts.find(index)?;
        Ok((file, place * self.shape.seq_len as u64))
    }

    #[inline]
    fn crop(&self, index: u64) -> Result<Element> {
        let (file, from) = self.place(index)?;
        self.shape.read(file, from)
    }
}

impl Stage for Crops {
    fn node(&self) -> Node<'_> {
        Node { describe: &self.shape, indices: Indices::Moved(self), ..self.shape.node("crops") }
    }
    facts! { parents: Vec::new() }
}

impl Moves for Crops {
    fn will_read(&self, next: Upcoming<'_>) {
        let place = |index: &u64| self.place(index.checked_rem(self.firsts.len)?).ok();
        self.shape.will_read(next.indices().iter().filter_map(place), next);
    }
}

impl MapDataset for Crops {
    type Item = Element;

    fn len(&self) -> u64 {
        self.firsts.len
    }

    #[inline]
    fn get(&self, index: u64, cx: &mut Cx) -> Result<Option<Element>> {
        match index.checked_rem(self.len()) {
            Some(index) => timed(cx, "crops", || self.crop(index)).map(Some),
            None => Ok(None),
        }
    }

    reads_in_bulk!();
}

impl BulkRead<Element> for Crops {
    fn get_stacked(&self, indices: &[u64], cx: &mut Cx) -> GetStacked<Element> {
        let place = |index: &u64| self.place(index.checked_rem(self.len())?).ok();
        timed_stack(cx, indices, place, &self.shape)
    }
}

/// Runs `crop` with timing. Counts its bytes, and attributes an error to the stage.
#[inline]
pub(super) fn timed(cx: &mut Cx, name: &str, crop: impl FnOnce() -> Result<Element>) -> Result<Element> {
    let crop = cx.timed(StageId(0), crop).map_err(|error| cx.blame(StageId(0), name, error))?;
    if cx.is_timing() {
        cx.sampled_bytes(StageId(0), crop.nbytes() as u64);
    }
    Ok(crop)
}

/// Stacks the crops at `indices`, with timing, and counts the bytes. `place` returns the file and the first id of a
/// crop.
fn timed_stack(
    cx: &mut Cx,
    indices: &[u64],
    place: impl FnMut(&u64) -> Option<(usize, u64)>,
    shape: &Shape,
) -> GetStacked<Element> {
    let batch = cx.timed_many(StageId(0), indices.len(), || {
        let places: Option<Vec<(usize, u64)>> = indices.iter().map(place).collect();
        shape.stack(&places?)
    })?;
    if cx.is_timing() {
        cx.sampled_bytes(StageId(0), batch.bytes as u64);
    }
    Some(batch)
}

debug_as!(Crops, |self, f| write!(f, "Crops({} of {} ids)", self.firsts.len, self.shape.width()));

/// Random crops: see [`Tokens::random_crops`]. An infinite [`MapDataset`] of elements `{tokens: i32[seq_len]}`.
///
/// # Determinism
/// Crop `index` starts at `Generator(Philox(key(seed), counter=[0, 0, 0, index])).integers(0, starts)` in NumPy's
/// terms. `starts` is the number of positions in all files at which a whole crop fits. All positions are equally
/// likely. Any index is reached directly, and no state is kept between crops.
#[must_use = "datasets are lazy and do nothing until read"]
#[derive(Clone)]
pub struct RandomCrops {
    shape: Shape,
    seed: u32,
    key: PhiloxKey,
    /// Table of the positions at which a crop fits.
    firsts: Firsts,
    len: u64,
}

impl RandomCrops {
    fn new(tokens: Tokens, seq_len: usize, seed: u32) -> Self {
        let (shape, key) = (Shape::new(tokens, seq_len), PhiloxKey::from_seed(seed.into()));
        Self { shape, seed, key, firsts: Firsts::default(), len: INFINITE }.numbered()
    }

    fn numbered(mut self) -> Self {
        let width = self.shape.width() as u64;
        self.firsts = number(&self.shape.tokens, |ids| (ids + 1).saturating_sub(width));
        self
    }

    setters! {
        /// Sets the number of crops per epoch. Each epoch continues after the previous epoch, with new crops.
        pub epoch(crops: u64) => len = crops;

        /// Yields views of the mapped file, `u16` or `u32` as stored, instead of `i32` copies. Default: `false`.
        pub as_stored(as_stored: bool) => shape.as_stored = as_stored;
    }

    /// Extends each crop by the next id. Default: `false`.
    pub fn with_next(mut self, with_next: bool) -> Self {
        self.shape.with_next = with_next;
        self.numbered()
    }

    /// Returns the file and the first id of crop `index`, among `last + 1` positions.
    #[inline]
    fn place(&self, index: u64, last: u64) -> Result<(usize, u64)> {
        self.firsts.find(self.key.element(index, 0).bounded_u64(last))
    }

    #[inline]
    fn crop(&self, index: u64) -> Result<Element> {
        let last = self.firsts.len.checked_sub(1).ok_or_else(|| Error::data("no file is as long as a crop"))?;
        // Crops are mostly read in order, but at addresses that no processor can predict. Without the prefetch, half of
        // the time would be spent waiting for memory.
        let (next_file, next_from) = self.place(index.wrapping_add(1), last)?;
        self.shape.prefetch(next_file, next_from);
        let (file, from) = self.place(index, last)?;
        self.shape.read(file, from)
    }
}

impl Stage for RandomCrops {
    fn node(&self) -> Node<'_> {
        Node { describe: self, indices: Indices::Moved(self), ..self.shape.node("random_crops") }
    }
    facts! { parents: Vec::new() }
}

impl Describe for RandomCrops {
    fn params(&self) -> String {
        format!("{}, seed={}, epoch={}", self.shape.params(), self.seed, self.len)
    }
    fn check(&self) -> Result<()> {
        self.shape.check()
    }
}

impl Moves for RandomCrops {
    fn will_read(&self, next: Upcoming<'_>) {
        if let Some(last) = self.firsts.len.checked_sub(1) {
            let place = |&index: &u64| self.place(index, last).ok();
            self.shape.will_read(next.indices().iter().filter_map(place), next);
        }
    }
}

impl MapDataset for RandomCrops {
    type Item = Element;

    fn len(&self) -> u64 {
        self.len
    }

    #[inline]
    fn get(&self, index: u64, cx: &mut Cx) -> Result<Option<Element>> {
        timed(cx, "random_crops", || self.crop(index)).map(Some)
    }

    reads_in_bulk!();
}

impl BulkRead<Element> for RandomCrops {
    fn get_stacked(&self, indices: &[u64], cx: &mut Cx) -> GetStacked<Element> {
        let last = self.firsts.len.checked_sub(1)?;
        timed_stack(cx, indices, |&index| self.place(index, last).ok(), &self.shape)
    }
}

debug_as!(RandomCrops, |self, f| {
    write!(f, "RandomCrops({} ids out of {} places)", self.shape.width(), self.firsts.len)
});

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MapDatasetExt;
    use crate::element::Stack;
    use crate::source::{TokenLayout, TokenType};

    /// Files of ids 0..10, 100..103 and 200..207.
    fn tokens(dir: &std::path::Path) -> Tokens {
        for (name, ids) in [("a.bin", 0..10u16), ("b.bin", 100..103), ("c.bin", 200..207)] {
            std::fs::write(dir.join(name), ids.flat_map(u16::to_le_bytes).collect::<Vec<_>>()).unwrap();
        }
        Tokens::open(dir, TokenLayout::Bare(TokenType::U16)).unwrap()
    }

    fn ids(elements: &[Element]) -> Vec<Vec<i32>> {
        elements.iter().map(|e| e.array("tokens").unwrap().as_slice::<i32>().unwrap().to_vec()).collect()
    }

    #[test]
    fn consecutive_crops_stay_in_their_file() {
        let dir = tempfile::tempdir().unwrap();
        let crops = tokens(dir.path()).crops(3);
        assert_eq!(crops.left_over(), 2);
        let all = ids(&crops.collect().unwrap());
        assert_eq!(all, [[0, 1, 2], [3, 4, 5], [6, 7, 8], [100, 101, 102], [200, 201, 202], [203, 204, 205]]);
        let all = ids(&crops.clone().with_next(true).collect().unwrap());
        assert_eq!(all, [[0, 1, 2, 3], [3, 4, 5, 6], [6, 7, 8, 9], [200, 201, 202, 203], [203, 204, 205, 206]]);
        let stored = crops.as_stored(true).get(5, &mut Cx::default()).unwrap().unwrap();
        assert_eq!(stored.array("tokens").unwrap().as_slice::<u16>().unwrap(), [203, 204, 205]);
    }

    #[test]
    fn random_crops_reach_every_place_equally_often() {
        let dir = tempfile::tempdir().unwrap();
        let ds = tokens(dir.path()).random_crops(3, 7).epoch(16_000);
        let mut counts = std::collections::BTreeMap::new();
        for crop in ids(&ds.collect().unwrap()) {
            assert!(crop[0] + 1 == crop[1] && crop[1] + 1 == crop[2], "{crop:?}");
            *counts.entry(crop[0]).or_insert(0) += 1;
        }
        assert_eq!(counts.keys().copied().collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5, 6, 7, 100, 200, 201, 202, 203, 204]);
        // 16000 / 14 = 1143 each, within 5 standard deviations.
        assert!(counts.values().all(|&n| (980..1310).contains(&n)), "{counts:?}");
        let get = |i| ds.get(i, &mut Cx::default()).unwrap().unwrap();
        assert_eq!(get(1 << 60), get(1 << 60));
    }

    #[test]
    fn a_batch_of_crops_is_their_stack() {
        let dir = tempfile::tempdir().unwrap();
        let tokens = tokens(dir.path());
        // More crops than are prefetched.
        let indices: Vec<u64> = [5, 0, 3, 3, 11].into_iter().chain(0..40).collect();
        fn check(ds: &impl MapDataset<Item = Element>, indices: &[u64]) {
            let mut cx = Cx::default();
            let items = indices.iter().map(|&index| ds.get(index, &mut cx).unwrap().unwrap()).collect();
            let batch = ds.bulk().unwrap().get_stacked(indices, &mut cx).unwrap();
            assert_eq!((batch.len, batch.bytes), (indices.len(), batch.batch.nbytes()));
            assert_eq!(batch.batch, Element::stack(items).unwrap());
        }
        for with_next in [false, true] {
            check(&tokens.crops(2).with_next(with_next), &indices);
            check(&tokens.random_crops(3, 7).with_next(with_next), &indices);
        }
        assert!(tokens.crops(2).node().has_columns && !tokens.crops(2).as_stored(true).node().has_columns);
        assert!(tokens.crops(11).bulk().unwrap().get_stacked(&[0], &mut Cx::default()).is_none());
        assert!(tokens.random_crops(11, 0).bulk().unwrap().get_stacked(&[0], &mut Cx::default()).is_none());
        // An id that is too large fails the stacking, and the element reports the error.
        let path = dir.path().join("large.bin");
        std::fs::write(&path, [1, 2, u32::MAX, 4].map(u32::to_le_bytes).concat()).unwrap();
        let large = Tokens::open(&path, TokenLayout::Bare(TokenType::U32)).unwrap();
        assert!(large.crops(2).bulk().unwrap().get_stacked(&[0], &mut Cx::default()).is_some());
        assert!(large.crops(2).bulk().unwrap().get_stacked(&[0, 1], &mut Cx::default()).is_none());
    }

    #[test]
    fn impossible_crops_are_refused_before_the_first() {
        let dir = tempfile::tempdir().unwrap();
        let tokens = tokens(dir.path());
        let check = |ds: RandomCrops| ds.node().describe.check().unwrap_err().to_string();
        assert_eq!(check(tokens.random_crops(11, 0)), "a crop needs 11 ids, but the longest file has 10");
        assert_eq!(check(tokens.random_crops(0, 0)), "seq_len is 0");
        assert!(tokens.random_crops(10, 0).with_next(true).get(0, &mut Cx::default()).is_err());
        assert!([0, 11].iter().all(|&seq_len| tokens.crops(seq_len).node().describe.check().is_err()));
        assert_eq!(tokens.crops(11).get(0, &mut Cx::default()).unwrap(), None);
    }
}
