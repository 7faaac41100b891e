//! The stages between the records of a source and a stage after the border, by which the keys of that stage are found.

use std::sync::Arc;

use super::Planning;
use super::keys::PrefixKeys;
use super::late_notes::LateNotes;
use super::pieces::{AsList, OfPieces, Shared, Traced};
use super::visit::Visit;
use crate::dataset::BoxMap;
use crate::dataset::map::{Each, Mapped};
use crate::error::Result;

/// The prefix of a border, extended by the later stages that see each element alone.
pub(crate) struct Leaf<T> {
    /// The number of the border.
    number: u32,
    records: Records<T>,
    /// The list to which the stages add their keys. `None` if a pass does not note keys, or if a record may yield
    /// several elements.
    noted: Option<Arc<LateNotes>>,
}

/// Elements by the indices of a prefix.
enum Records<T> {
    /// At most one element per index.
    One(BoxMap<T>),
    /// Any number of elements per index.
    Many(BoxMap<Vec<T>>),
    /// Any number of elements per index, each with the number of its input element.
    Traced(BoxMap<Traced<T>>),
}

impl<T: 'static> Leaf<T> {
    /// Creates the leaf of border number `number`, whose prefix is `dataset`.
    pub(in crate::dataset) fn new(number: u32, dataset: BoxMap<T>, noted: Option<Arc<LateNotes>>) -> Self {
        Self { number, records: Records::One(dataset), noted }
    }

    /// Creates the leaf of a prefix that yields any number of elements per index.
    pub(in crate::dataset) fn of_many(number: u32, dataset: BoxMap<Vec<T>>) -> Self {
        Self { number, records: Records::Many(dataset), noted: None }
    }

    /// Returns the leaf after a stage that may change the number or order of elements. A pass notes no keys of
    /// later stages.
    pub(super) fn unnoted(self) -> Self {
        Self { noted: None, ..self }
    }

    /// Returns the leaf with a stage appended.
    pub(in crate::dataset) fn through<E>(&self, each: &Arc<E>) -> Leaf<E::Out>
    where
        E: Each<T, Out: 'static> + 'static,
    {
        let records = match &self.records {
            Records::One(ds) => Records::One(behind(ds, Shared(each.clone()))),
            Records::Many(ds) => Records::Traced(behind(ds, OfPieces(AsList(each.clone())))),
            Records::Traced(ds) => Records::Traced(behind(ds, OfPieces(AsList(each.clone())))),
        };
        Leaf { number: self.number, records, noted: self.noted_one() }
    }

    /// Returns the leaf with a stage appended that makes a list of elements from each element.
    pub(super) fn listed<U: 'static, E>(&self, each: &Arc<E>) -> Leaf<U>
    where
        E: Each<T, Out = Vec<U>> + 'static,
    {
        let records = match &self.records {
            Records::One(ds) => Records::Many(behind(ds, Shared(each.clone()))),
            Records::Many(ds) => Records::Traced(behind(ds, OfPieces(Shared(each.clone())))),
            Records::Traced(ds) => Records::Traced(behind(ds, OfPieces(Shared(each.clone())))),
        };
        Leaf { number: self.number, records, noted: self.noted_one() }
    }

    /// Returns the notes for an appended stage, if each index still yields at most one element.
    fn noted_one(&self) -> Option<Arc<LateNotes>> {
        self.noted.clone().filter(|_| matches!(self.records, Records::One(_)))
    }

    /// Finds the keys after the last stage. Returns `None` if there are none.
    pub(super) fn keys(&self, planning: &Planning<'_>) -> Result<Option<OfLeaf>> {
        let keys = match &self.records {
            Records::One(ds) => planning.keys(&Arc::new(ds.clone()), Visit::element())?,
            Records::Many(ds) => planning.keys(&Arc::new(ds.clone()), Visit::list())?,
            Records::Traced(ds) => planning.keys(&Arc::new(ds.clone()), Visit::traced())?,
        };
        let is_traced = matches!(self.records, Records::Traced(_));
        Ok(keys.map(|keys| {
            let noted = self.noted.clone().map(|notes| (notes.add(&keys), notes));
            OfLeaf { number: self.number, keys, is_traced, noted }
        }))
    }
}

/// The keys of a leaf.
pub(super) struct OfLeaf {
    /// The number of the border.
    pub(super) number: u32,
    pub(super) keys: Arc<PrefixKeys>,
    /// True if the keys store the number of each element's input element.
    pub(super) is_traced: bool,
    /// The number of the stage among the stages whose keys are noted.
    pub(super) noted: Option<(usize, Arc<LateNotes>)>,
}

/// Applies the function of a stage to `dataset`.
fn behind<T: 'static, E>(dataset: &BoxMap<T>, each: E) -> BoxMap<E::Out>
where
    E: Each<T, Out: 'static> + 'static,
{
    BoxMap::new(Mapped::new(dataset.clone(), |_| each))
}

/// A conversion of items that is not a stage.
#[cfg(feature = "python")]
pub(crate) trait Turn {
    /// Converts each item of `dataset` by `turn`.
    fn turn<I: Send + 'static, O: 'static>(
        &self,
        dataset: BoxMap<I>,
        turn: impl Fn(I) -> Result<O> + Clone + Send + Sync + 'static,
    ) -> BoxMap<O>;
}

#[cfg(feature = "python")]
impl<T: Send + 'static> Leaf<T> {
    /// Converts each element by `convert`.
    pub(super) fn turned<U: 'static>(
        self,
        convert: impl Fn(T) -> Result<U> + Copy + Send + Sync + 'static,
        turn: &impl Turn,
    ) -> Leaf<U> {
        let records = match self.records {
            Records::One(ds) => Records::One(turn.turn(ds, convert)),
            Records::Many(ds) => {
                Records::Many(turn.turn(ds, move |list: Vec<T>| list.into_iter().map(convert).collect()))
            }
            Records::Traced(ds) => Records::Traced(turn.turn(ds, move |list: Traced<T>| list.turned(convert))),
        };
        Leaf { number: self.number, records, noted: self.noted }
    }
}
