//! Records on their way to a stage, each by itself, whatever lies between: where keys of that stage are found.

use std::sync::Arc;

use super::Planning;
use super::keys::PrefixKeys;
use super::late_notes::LateNotes;
use super::pieces::{AsList, OfPieces, Shared, Traced};
use super::visit::Visit;
use crate::dataset::BoxMap;
use crate::dataset::map::{Each, Mapped};
use crate::error::Result;

/// The prefix of a border, with the stages behind it that see each element alone, as though they stood in front.
pub(crate) struct Leaf<T> {
    /// The number of the border.
    number: u32,
    records: Records<T>,
    /// Where a pass notes keys of its stages, if it does, and each record is one element so far.
    noted: Option<Arc<LateNotes>>,
}

/// Elements by the indices of a prefix.
enum Records<T> {
    /// One of each, or none.
    One(BoxMap<T>),
    /// Any number of each.
    Many(BoxMap<Vec<T>>),
    /// Those that were made of any number of each.
    Traced(BoxMap<Traced<T>>),
}

impl<T: 'static> Leaf<T> {
    /// The prefix `dataset` of border `number`.
    pub(in crate::dataset) fn new(number: u32, dataset: BoxMap<T>, noted: Option<Arc<LateNotes>>) -> Self {
        Self { number, records: Records::One(dataset), noted }
    }

    /// The same of a prefix that yields any number for each index.
    pub(in crate::dataset) fn of_many(number: u32, dataset: BoxMap<Vec<T>>) -> Self {
        Self { number, records: Records::Many(dataset), noted: None }
    }

    /// The same behind a stage that may mix up which element is which: no pass notes keys behind it.
    pub(super) fn unnoted(self) -> Self {
        Self { noted: None, ..self }
    }

    /// The same with one more stage.
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

    /// The same with one more stage, which lists what it makes of each element.
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

    /// Where keys of one more stage are noted.
    fn noted_one(&self) -> Option<Arc<LateNotes>> {
        self.noted.clone().filter(|_| matches!(self.records, Records::One(_)))
    }

    /// The keys of what its stages make of records; `None` where there are none.
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

/// Keys of what becomes of the records of a border.
pub(super) struct OfLeaf {
    /// The number of the border.
    pub(super) number: u32,
    pub(super) keys: Arc<PrefixKeys>,
    /// Whether they say of each element of which other it was made.
    pub(super) is_traced: bool,
    /// The number of the stage among those of which keys are noted.
    pub(super) noted: Option<(usize, Arc<LateNotes>)>,
}

/// Puts the function of a stage behind `dataset`.
fn behind<T: 'static, E>(dataset: &BoxMap<T>, each: E) -> BoxMap<E::Out>
where
    E: Each<T, Out: 'static> + 'static,
{
    BoxMap::new(Mapped::new(dataset.clone(), |_| each))
}

/// A change of items that no stage knows of.
#[cfg(feature = "python")]
pub(crate) trait Turn {
    /// Turns the items of `dataset` into what `turn` makes of each.
    fn turn<I: Send + 'static, O: 'static>(
        &self,
        dataset: BoxMap<I>,
        turn: impl Fn(I) -> Result<O> + Clone + Send + Sync + 'static,
    ) -> BoxMap<O>;
}

#[cfg(feature = "python")]
impl<T: Send + 'static> Leaf<T> {
    /// The same with its elements turned into what `convert` makes of each.
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
