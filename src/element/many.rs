//! The results of many indices in one value.

use crate::error::{Error, Result};

/// A function that runs a closure once, with a resource such as an interpreter acquired for all calls in the closure.
pub(crate) type Around = fn(&mut dyn FnMut());

/// The results of [`MapDataset::get_many`](crate::MapDataset::get_many): a place for each index, with its element, nothing
/// (a filter dropped it), or an error.
///
/// Elements are stored contiguously; places without an element are usually rare and listed separately. A stage
/// transforms the elements in a tight loop, and each exception keeps its place.
/// ```
/// use gristmill::dataset::map::Many;
/// let many = Many::from(vec![1, 2, 3]).filter_map(|_, x| Ok((x != 2).then_some(10 * x)));
/// assert_eq!((many.len(), many.items()), (3, [10, 30].as_slice()));
/// let slots: Vec<_> = many.into_iter().map(|slot| slot.unwrap()).collect();
/// assert_eq!(slots, [Some(10), None, Some(30)]);
/// ```
#[derive(Debug)]
pub struct Many<T> {
    items: Vec<T>,
    /// In ascending order.
    gaps: Vec<Gap>,
}

/// A place without an element.
#[derive(Debug)]
struct Gap {
    place: usize,
    /// `None` if the element was dropped.
    error: Option<Error>,
}

impl Gap {
    fn slot<T>(self) -> Result<Option<T>> {
        self.error.map_or(Ok(None), Err)
    }
}

impl<T> Many<T> {
    /// Makes an empty list.
    pub fn new() -> Self {
        Self { items: Vec::new(), gaps: Vec::new() }
    }

    /// Makes an empty list with room for the elements of `places` places.
    pub fn with_capacity(places: usize) -> Self {
        Self { items: Vec::with_capacity(places), gaps: Vec::new() }
    }

    /// Calls `get` for each index in order and collects the results.
    pub fn one_by_one(indices: &[u64], mut get: impl FnMut(u64) -> Result<Option<T>>) -> Self {
        let mut many = Self::with_capacity(indices.len());
        indices.iter().for_each(|&index| many.push(get(index)));
        many
    }

    /// Adds the next place.
    #[inline]
    pub fn push(&mut self, slot: Result<Option<T>>) {
        match slot {
            Ok(Some(item)) => self.items.push(item),
            Ok(None) => self.gap(None),
            Err(error) => self.gap(Some(error)),
        }
    }

    #[cold]
    fn gap(&mut self, error: Option<Error>) {
        self.gaps.push(Gap { place: self.len(), error });
    }

    /// Adds all places of `other`.
    pub fn append(&mut self, other: Self) {
        let before = self.len();
        if before == 0 {
            *self = other;
            return;
        }
        self.items.extend(other.items);
        self.gaps.extend(other.gaps.into_iter().map(|gap| Gap { place: before + gap.place, ..gap }));
    }

    /// Returns the number of places, with or without an element.
    pub fn len(&self) -> usize {
        self.items.len() + self.gaps.len()
    }

    /// Returns true if there are no places.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the elements in order.
    pub fn items(&self) -> &[T] {
        &self.items
    }

    /// Returns the elements if every place has an element.
    ///
    /// # Errors
    /// Returns `self` unchanged if a place has no element.
    pub fn dense(self) -> Result<Vec<T>, Self> {
        if self.gaps.is_empty() { Ok(self.items) } else { Err(self) }
    }

    /// Maps each element with `f`, which also receives its place.
    #[inline]
    pub fn map<U>(self, mut f: impl FnMut(usize, T) -> U) -> Many<U> {
        if self.gaps.is_empty() {
            // Collects in place if the sizes allow it.
            let items = self.items.into_iter().enumerate().map(|(place, item)| f(place, item)).collect();
            return Many { items, gaps: Vec::new() };
        }
        self.filter_map(|place, item| Ok(Some(f(place, item))))
    }

    /// Maps each element with `f`, which also receives its place and may drop the element or fail.
    #[inline]
    pub fn filter_map<U>(self, mut f: impl FnMut(usize, T) -> Result<Option<U>>) -> Many<U> {
        let mut out = Many::with_capacity(self.items.len());
        let mut gaps = self.gaps.into_iter().peekable();
        for item in self.items {
            while let Some(gap) = gaps.next_if(|gap| gap.place == out.len()) {
                out.gaps.push(gap);
            }
            out.push(f(out.len(), item));
        }
        out.gaps.extend(gaps);
        out
    }

    /// Works like [`filter_map`](Self::filter_map), with all calls of `f` inside a single call of `around`.
    pub(crate) fn filter_map_in<U>(self, around: Around, mut f: impl FnMut(usize, T) -> Result<Option<U>>) -> Many<U> {
        let (mut many, mut out) = (Some(self), Many::new());
        around(&mut || {
            if let Some(many) = many.take() {
                out = many.filter_map(&mut f);
            }
        });
        out
    }

    /// Maps each error with `f`, which also receives its place.
    pub fn map_errors(mut self, mut f: impl FnMut(usize, Error) -> Error) -> Self {
        for gap in &mut self.gaps {
            gap.error = gap.error.take().map(|error| f(gap.place, error));
        }
        self
    }
}

default_as!(<T> Many<T>, Self::new());

impl<T> From<Vec<T>> for Many<T> {
    /// Makes a list with an element at every place.
    fn from(items: Vec<T>) -> Self {
        Self { items, gaps: Vec::new() }
    }
}

impl<T> FromIterator<Result<Option<T>>> for Many<T> {
    fn from_iter<I: IntoIterator<Item = Result<Option<T>>>>(slots: I) -> Self {
        let slots = slots.into_iter();
        let mut many = Self::with_capacity(slots.size_hint().0);
        slots.for_each(|slot| many.push(slot));
        many
    }
}

impl<T> IntoIterator for Many<T> {
    type Item = Result<Option<T>>;
    type IntoIter = ManySlots<T>;

    fn into_iter(self) -> ManySlots<T> {
        ManySlots { items: self.items.into_iter(), gaps: self.gaps.into_iter(), place: 0 }
    }
}

/// An iterator over the places of [`Many`].
#[derive(Debug)]
pub struct ManySlots<T> {
    items: std::vec::IntoIter<T>,
    gaps: std::vec::IntoIter<Gap>,
    place: usize,
}

impl<T> ManySlots<T> {
    /// Moves at most `most` elements into `out`, up to the first place without an element. Returns their number.
    pub(crate) fn run(&mut self, most: usize, out: &mut Vec<T>) -> usize {
        let until = self.gaps.as_slice().first().map_or(self.items.len(), |gap| gap.place - self.place);
        let count = until.min(most);
        if count == self.items.len() {
            out.extend(std::mem::take(&mut self.items));
        } else {
            out.extend(self.items.by_ref().take(count));
        }
        self.place += count;
        count
    }
}

default_as!(<T> ManySlots<T>, Many::new().into_iter());

impl<T> Iterator for ManySlots<T> {
    type Item = Result<Option<T>>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let slot = match self.gaps.as_slice().first() {
            Some(gap) if gap.place == self.place => self.gaps.next()?.slot(),
            _ => Ok(Some(self.items.next()?)),
        };
        self.place += 1;
        Some(slot)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.items.len() + self.gaps.len();
        (left, Some(left))
    }
}

impl<T> ExactSizeIterator for ManySlots<T> {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Makes a slot from a number: an element, nothing or an error.
    fn slot(x: i32) -> Result<Option<i32>> {
        match x % 4 {
            0 => Ok(None),
            1 => Err(Error::data(format!("{x}"))),
            _ => Ok(Some(x)),
        }
    }

    fn words<T: std::fmt::Debug>(slots: impl IntoIterator<Item = Result<Option<T>>>) -> Vec<String> {
        slots.into_iter().map(|slot| format!("{slot:?}")).collect()
    }

    /// Drops the element, fails or keeps it, depending on its value.
    fn sift(x: i32) -> Result<Option<i32>> {
        if x % 3 == 0 { slot(x / 3) } else { Ok(Some(-x)) }
    }

    proptest! {
        /// `Many` behaves like a plain list of slots under all operations.
        #[test]
        fn equals_a_list_of_slots(xs in prop::collection::vec(0i32..40, 0..30), cut in 0usize..30, most in 0usize..30) {
            let list = || xs.iter().map(|&x| slot(x));
            let many = || list().collect::<Many<i32>>();
            prop_assert_eq!(many().len(), xs.len());
            prop_assert_eq!(words(many()), words(list()));
            let mapped = list().enumerate().map(|(at, slot)| slot.map(|x| x.map(|x| (at, x))));
            prop_assert_eq!(words(many().map(|at, x| (at, x))), words(mapped));
            let sifted = list().map(|slot| slot.and_then(|x| x.map_or(Ok(None), sift)));
            prop_assert_eq!(words(many().filter_map(|_, x| sift(x))), words(sifted));
            let (front, back) = xs.split_at(cut.min(xs.len()));
            let mut both: Many<i32> = front.iter().map(|&x| slot(x)).collect();
            both.append(back.iter().map(|&x| slot(x)).collect());
            prop_assert_eq!(words(both), words(list()));
            let named = many().map_errors(|at, error| error.index(at as u64));
            prop_assert_eq!(words(named), words(list().enumerate().map(|(at, s)| s.map_err(|e| e.index(at as u64)))));
            // A run ends before the first place without an element.
            let (mut slots, mut run) = (many().into_iter(), Vec::new());
            let count = slots.run(most, &mut run);
            let elements: Vec<i32> = list().map_while(|slot| slot.ok().flatten()).take(most).collect();
            prop_assert_eq!((count, run), (elements.len(), elements));
            prop_assert_eq!(slots.len(), xs.len() - count);
            prop_assert_eq!(words(slots), words(list().skip(count)));
        }
    }

    #[test]
    fn dense_is_all_or_nothing() {
        assert_eq!(Many::from(vec![1, 2]).dense().unwrap(), [1, 2]);
        let gappy: Many<i32> = [Ok(Some(1)), Ok(None)].into_iter().collect();
        assert_eq!(gappy.dense().unwrap_err().items(), [1]);
    }
}
