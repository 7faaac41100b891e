//! The stages between the records of a source and a stage after the border, by which the keys of that stage are found.

use std::sync::Arc;

use super::Planning;
use super::measure::Measure;
use super::prefix_keys::PrefixKeys;
use super::recorder::ChainRecorder;
use crate::dataset::facts::Facts;
use crate::dataset::iter::left_out;
use crate::dataset::map::{Each, Mapped};
use crate::dataset::{BoxMap, Role};
use crate::error::{ErrorKind, Result};

/// The prefix of a border, extended by the later stages that see each element alone.
pub(crate) struct Chain<T> {
    /// The number of the border.
    border: u32,
    records: Records<T>,
    /// The recorder of the stages' keys. `None` if keys are not recorded, or if a record may yield several elements.
    recorder: Option<Arc<ChainRecorder>>,
}

/// Elements by the indices of a prefix.
enum Records<T> {
    /// At most one element per index.
    One(BoxMap<T>),
    /// Any number of elements per index.
    Many(BoxMap<Vec<T>>),
    /// Any number of elements per index, each with the number of its input element.
    WithOrigins(BoxMap<WithOrigins<T>>),
}

impl<T: 'static> Chain<T> {
    /// Creates the chain of a border, whose prefix is `dataset`.
    pub(in crate::dataset) fn new(border: u32, dataset: BoxMap<T>, recorder: Option<Arc<ChainRecorder>>) -> Self {
        Self { border, records: Records::One(dataset), recorder }
    }

    /// Creates the chain of a prefix that yields any number of elements per index.
    pub(in crate::dataset) fn of_many(border: u32, dataset: BoxMap<Vec<T>>) -> Self {
        Self { border, records: Records::Many(dataset), recorder: None }
    }

    /// Returns the chain after a stage that may change the number or order of elements. The keys of later stages are
    /// not recorded.
    pub(super) fn unrecorded(self) -> Self {
        Self { recorder: None, ..self }
    }

    /// Returns the chain with a stage appended.
    pub(in crate::dataset) fn through<E>(&self, each: &Arc<E>) -> Chain<E::Out>
    where
        E: Each<T, Out: 'static> + 'static,
    {
        let records = match &self.records {
            Records::One(ds) => Records::One(behind(ds, Shared(each.clone()))),
            Records::Many(ds) => Records::WithOrigins(behind(ds, OfPieces(AsList(each.clone())))),
            Records::WithOrigins(ds) => Records::WithOrigins(behind(ds, OfPieces(AsList(each.clone())))),
        };
        Chain { border: self.border, records, recorder: self.recorder_of_one() }
    }

    /// Returns the chain with a stage appended that makes a list of elements from each element.
    pub(super) fn listed<U: 'static, E>(&self, each: &Arc<E>) -> Chain<U>
    where
        E: Each<T, Out = Vec<U>> + 'static,
    {
        let records = match &self.records {
            Records::One(ds) => Records::Many(behind(ds, Shared(each.clone()))),
            Records::Many(ds) => Records::WithOrigins(behind(ds, OfPieces(Shared(each.clone())))),
            Records::WithOrigins(ds) => Records::WithOrigins(behind(ds, OfPieces(Shared(each.clone())))),
        };
        Chain { border: self.border, records, recorder: self.recorder_of_one() }
    }

    /// Returns the recorder for an appended stage, if each index still yields at most one element.
    fn recorder_of_one(&self) -> Option<Arc<ChainRecorder>> {
        self.recorder.clone().filter(|_| matches!(self.records, Records::One(_)))
    }

    /// Finds the keys after the last stage. Returns `None` if there are none.
    pub(super) fn keys(&self, planning: &Planning<'_>) -> Result<Option<ChainKeys>> {
        let keys = match &self.records {
            Records::One(ds) => planning.keys(&Arc::new(ds.clone()), Measure::element())?,
            Records::Many(ds) => planning.keys(&Arc::new(ds.clone()), Measure::list())?,
            Records::WithOrigins(ds) => planning.keys(&Arc::new(ds.clone()), Measure::with_origins())?,
        };
        let has_origins = matches!(self.records, Records::WithOrigins(_));
        Ok(keys.map(|keys| {
            let recorder = self.recorder.clone().map(|recorder| (recorder.add(&keys), recorder));
            ChainKeys { border: self.border, keys, has_origins, recorder }
        }))
    }
}

/// The keys of a chain.
pub(super) struct ChainKeys {
    /// The number of the border.
    pub(super) border: u32,
    pub(super) keys: Arc<PrefixKeys>,
    /// True if the keys store the number of each element's input element.
    pub(super) has_origins: bool,
    /// The recorder of the stage's keys, and the number of the stage there.
    pub(super) recorder: Option<(usize, Arc<ChainRecorder>)>,
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
impl<T: Send + 'static> Chain<T> {
    /// Converts each element by `convert`.
    pub(super) fn turned<U: 'static>(
        self,
        convert: impl Fn(T) -> Result<U> + Copy + Send + Sync + 'static,
        turn: &impl Turn,
    ) -> Chain<U> {
        let records = match self.records {
            Records::One(ds) => Records::One(turn.turn(ds, convert)),
            Records::Many(ds) => {
                Records::Many(turn.turn(ds, move |list: Vec<T>| list.into_iter().map(convert).collect()))
            }
            Records::WithOrigins(ds) => {
                Records::WithOrigins(turn.turn(ds, move |list: WithOrigins<T>| list.turned(convert)))
            }
        };
        Chain { border: self.border, records, recorder: self.recorder }
    }
}

/// Elements that a stage makes from the elements of a record, in order. An element's number is its index in this list.
pub(in crate::dataset) struct WithOrigins<T>(pub(super) Vec<Piece<T>>);

/// An element made from an element of the record.
pub(in crate::dataset) struct Piece<T> {
    /// The number of the input element.
    pub(super) of: u32,
    /// The element, or `None` if the stage failed.
    pub(super) made: Option<T>,
}

impl<T> WithOrigins<T> {
    /// Converts each element by `turn`.
    #[cfg(feature = "python")]
    pub(super) fn turned<U>(self, turn: impl Fn(T) -> Result<U>) -> Result<WithOrigins<U>> {
        let piece = |Piece { of, made }: Piece<T>| Ok(Piece { of, made: made.map(&turn).transpose()? });
        self.0.into_iter().map(piece).collect::<Result<_>>().map(WithOrigins)
    }
}

/// Implements [`Facts`] for a wrapper of a stage's function, by forwarding to the function.
macro_rules! same_facts {
    ($name:ident) => {
        impl<E: Facts> Facts for $name<E> {
            fn name(&self) -> &'static str {
                self.0.name()
            }
            fn params(&self) -> String {
                self.0.params()
            }
            fn role(&self) -> Role {
                self.0.role()
            }
            fn is_native(&self) -> bool {
                self.0.is_native()
            }
            fn has_every_index(&self) -> bool {
                self.0.has_every_index()
            }
            fn sees_index(&self) -> bool {
                self.0.sees_index()
            }
        }
    };
}

/// The function of a stage, shared with the stage itself.
pub(super) struct Shared<E>(pub(super) Arc<E>);

impl<T, E: Each<T>> Each<T> for Shared<E> {
    type Out = E::Out;

    fn apply(&self, index: u64, element: T) -> Result<Option<E::Out>> {
        self.0.apply(index, element)
    }
}

/// Like [`Shared`], but lists the element: an empty list if the function drops the element.
pub(super) struct AsList<E>(pub(super) Arc<E>);

impl<T, E: Each<T>> Each<T> for AsList<E> {
    type Out = Vec<E::Out>;

    fn apply(&self, index: u64, element: T) -> Result<Option<Vec<E::Out>>> {
        match self.0.apply(index, element)? {
            // Later elements of the record would get other numbers.
            None if self.0.role() == Role::Elementwise => Err(left_out()),
            made => Ok(Some(made.into_iter().collect())),
        }
    }
}

/// Applies a function that returns a list to every element of a record.
pub(super) struct OfPieces<E>(pub(super) E);

impl<E> OfPieces<E> {
    fn of_each<T, U>(&self, index: u64, pieces: impl Iterator<Item = Option<T>>) -> Result<Option<WithOrigins<U>>>
    where
        E: Each<T, Out = Vec<U>>,
    {
        let mut all = Vec::new();
        for (of, piece) in (0..).zip(pieces) {
            match piece.map(|piece| self.0.apply(index, piece)) {
                Some(Ok(made)) => {
                    all.extend(made.into_iter().flatten().map(|made| Piece { of, made: Some(made) }));
                }
                Some(Err(error)) if error.kind() != ErrorKind::Data => return Err(error),
                // A failed element does not make the rest of the record bad.
                Some(Err(_)) | None => all.push(Piece { of, made: None }),
            }
        }
        Ok(Some(WithOrigins(all)))
    }
}

impl<T, U, E: Each<T, Out = Vec<U>>> Each<Vec<T>> for OfPieces<E> {
    type Out = WithOrigins<U>;

    fn apply(&self, index: u64, pieces: Vec<T>) -> Result<Option<WithOrigins<U>>> {
        self.of_each(index, pieces.into_iter().map(Some))
    }
}

impl<T, U, E: Each<T, Out = Vec<U>>> Each<WithOrigins<T>> for OfPieces<E> {
    type Out = WithOrigins<U>;

    fn apply(&self, index: u64, pieces: WithOrigins<T>) -> Result<Option<WithOrigins<U>>> {
        self.of_each(index, pieces.0.into_iter().map(|piece| piece.made))
    }
}

same_facts!(Shared);
same_facts!(AsList);
same_facts!(OfPieces);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    /// Drops 2, repeats each other number x times, and fails at 3.
    struct Times;

    impl Facts for Times {
        fn name(&self) -> &'static str {
            "times"
        }
    }

    impl Each<u32> for Times {
        type Out = Vec<u32>;

        fn apply(&self, _: u64, x: u32) -> Result<Option<Vec<u32>>> {
            match x {
                2 => Ok(None),
                3 => Err(Error::data("three")),
                9 => Err(Error::config("nine")),
                _ => Ok(Some(vec![x; x as usize])),
            }
        }
    }

    fn listed(made: Result<Option<WithOrigins<u32>>>) -> Vec<(u32, Option<u32>)> {
        made.unwrap().unwrap().0.into_iter().map(|piece| (piece.of, piece.made)).collect()
    }

    #[test]
    fn each_piece_knows_of_which_it_was_made() {
        let pieces = || OfPieces(Times).apply(0, vec![1, 2, 3, 4, 0]);
        let four = (3, Some(4));
        assert_eq!(listed(pieces()), [(0, Some(1)), (2, None), four, four, four, four]);
        // The second stage numbers its input elements anew.
        let again = OfPieces(Times).apply(0, pieces().unwrap().unwrap());
        let fours = (2..6).flat_map(|of| [(of, Some(4)); 4]);
        assert_eq!(listed(again), [(0, Some(1)), (1, None)].into_iter().chain(fours).collect::<Vec<_>>());
        assert!(OfPieces(Times).apply(0, vec![1, 9]).is_err());
    }
}
