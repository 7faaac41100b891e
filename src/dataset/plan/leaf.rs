//! Single records on their way to a stage, whatever lies between: where keys of that stage are found.

use std::sync::Arc;

use super::keys::PrefixKeys;
use super::records::{Visit, length};
use super::stand_in::tag_of;
use super::{Member, Planning};
use crate::dataset::BoxMap;
use crate::dataset::facts::Facts;
use crate::dataset::map::{Each, Mapped};
use crate::element::{Element, Name};
use crate::error::{Error, Result};
use crate::keys::Key;

/// The prefix of a border, with the stages behind it that see each element alone, as though they stood in front.
pub(crate) struct Leaf<T> {
    /// The number of the border.
    number: u32,
    dataset: BoxMap<T>,
}

impl<T: 'static> Leaf<T> {
    /// The prefix `dataset` of border `number`.
    pub(in crate::dataset) fn new(number: u32, dataset: BoxMap<T>) -> Self {
        Self { number, dataset }
    }

    /// The same with one more stage.
    pub(in crate::dataset) fn through<E>(&self, each: &Arc<E>) -> Leaf<E::Out>
    where
        E: Each<T, Out: 'static> + 'static,
    {
        Leaf::new(self.number, BoxMap::new(Mapped::new(self.dataset.clone(), |_| Shared(each.clone()))))
    }

    /// The same with its elements turned into others.
    #[cfg(feature = "python")]
    pub(super) fn turned<U>(self, turn: impl FnOnce(BoxMap<T>) -> BoxMap<U>) -> Leaf<U> {
        Leaf { number: self.number, dataset: turn(self.dataset) }
    }
}

/// The function of a stage, which a stage elsewhere has as well.
struct Shared<E>(Arc<E>);

impl<E: Facts> Facts for Shared<E> {
    fn name(&self) -> &'static str {
        self.0.name()
    }
    fn params(&self) -> String {
        self.0.params()
    }
    fn role(&self) -> crate::dataset::Role {
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

impl<T, E: Each<T>> Each<T> for Shared<E> {
    type Out = E::Out;

    fn apply(&self, index: u64, element: T) -> Result<Option<E::Out>> {
        self.0.apply(index, element)
    }
}

/// Keys of what a stage behind borders makes of single elements: which it keeps, and how long they are then.
pub(in crate::dataset) struct LateKeys {
    /// By the numbers of borders.
    keys: Vec<(u32, Arc<PrefixKeys>)>,
    names: Vec<Name>,
}

impl LateKeys {
    /// The keys of `leaves` with the lengths that are asked for; `None` where one has none.
    ///
    /// # Errors
    /// Those of looking for keys.
    pub(in crate::dataset) fn find<T: 'static>(
        leaves: &[Leaf<T>],
        visit: Visit<T>,
        planning: &Planning<'_>,
    ) -> Result<Option<Self>> {
        let mut keys = Vec::with_capacity(leaves.len());
        for leaf in leaves {
            let Some(found) = planning.keys(&Arc::new(leaf.dataset.clone()), visit)? else { return Ok(None) };
            keys.push((leaf.number, found));
        }
        Ok(Some(Self { keys, names: planning.names.to_vec() }))
    }

    /// Puts the lengths that an element, or that piece of it, will have behind `lens`.
    ///
    /// # Errors
    /// Those of looking its key up.
    pub(in crate::dataset) fn lens(&self, member: &Member, lens: &mut Vec<u32>) -> Result<()> {
        self.of(member.leaf)?.lens(member.slot, member.piece, self.names.len(), lens)
    }

    /// Checks that what was made is as long as its key says; `None` is what was dropped.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) where it is not.
    pub(in crate::dataset) fn check<T: 'static>(&self, made: Option<&T>, member: &Member) -> Result<()> {
        let Some(made) = made else { return Err(stale("it is dropped, and its key says that it is kept")) };
        if self.names.is_empty() {
            return Ok(());
        }
        let Some(element) = super::records::as_element(made).transpose()? else { return Ok(()) };
        let mut lens = Vec::new();
        self.lens(member, &mut lens)?;
        check_lens(&element, &self.names, &lens)
    }

    /// The number of elements that become of an index in front of border `leaf`, by its key.
    pub(super) fn count(&self, leaf: u32, slot: u64) -> Result<Option<u32>> {
        Ok(match self.of(leaf)?.key(slot, &mut Vec::new())? {
            Key::Elements(count) => Some(count),
            Key::Bad => None,
        })
    }

    fn of(&self, leaf: u32) -> Result<&PrefixKeys> {
        let keys = self.keys.iter().find(|(number, _)| *number == leaf);
        keys.map(|(_, keys)| &**keys)
            .ok_or_else(|| Error::state("an element was planned of a border that is not there"))
    }

    /// Stands for what becomes of the element that `element` stands for.
    fn stand_ins(&self, element: &Element) -> Result<Vec<Element>> {
        let [slot, place] = tag_of(element)?;
        let leaf = (place >> 32) as u32;
        self.of(leaf)?.stand_ins(leaf, slot, &self.names).map_err(|error| error.index(slot))
    }
}

/// Checks that the arrays `names` of an element have as many cells as its key says.
///
/// # Errors
/// [`ErrorKind::Data`](crate::ErrorKind::Data) where one has not.
pub(super) fn check_lens(element: &Element, names: &[Name], lens: &[u32]) -> Result<()> {
    for (name, expected) in names.iter().zip(lens) {
        let len = length(element, name)?;
        if len != *expected as usize {
            return Err(stale(&format!("{name:?} has {len} cells, and its key says {expected}")));
        }
    }
    Ok(())
}

/// The error of an element that is not as its key says.
#[cold]
pub(super) fn stale(why: &str) -> Error {
    Error::data(format!("the keys are stale: {why}")).help(
        "make them again with `gristmill index --keys`; functions must give the same of the same record whenever they are called",
    )
}

/// Keeps what stands for elements that a stage keeps, as long as they are then: its pass over stand-ins.
pub(in crate::dataset) struct ByKey {
    pub(in crate::dataset) keys: Arc<LateKeys>,
    /// The name of the stage.
    pub(in crate::dataset) name: &'static str,
}

impl Facts for ByKey {
    fn name(&self) -> &'static str {
        self.name
    }
}

impl Each<Element> for ByKey {
    type Out = Element;

    fn apply(&self, _: u64, element: Element) -> Result<Option<Element>> {
        Ok(self.keys.stand_ins(&element)?.pop())
    }
}

/// The same of a stage that makes any number of each.
pub(in crate::dataset) struct PiecesByKey {
    pub(super) keys: Arc<LateKeys>,
    pub(super) name: &'static str,
}

impl Facts for PiecesByKey {
    fn name(&self) -> &'static str {
        self.name
    }
}

impl Each<Element> for PiecesByKey {
    type Out = Vec<Element>;

    fn apply(&self, _: u64, element: Element) -> Result<Option<Vec<Element>>> {
        self.keys.stand_ins(&element).map(Some)
    }
}
