//! Keys of a stage after the border, and the pass over stand-ins that uses them.

use std::sync::Arc;

use super::Planning;
use super::chain::{Chain, ChainKeys};
use super::measure::{as_element, check_lens, failed, stale, texts};
use super::recorder::StageRecorder;
use super::stand_in::StandIn;
use crate::cx::{ElementId, StageId};
use crate::dataset::facts::Facts;
use crate::dataset::map::Each;
use crate::element::Name;
use crate::error::{Error, Result};
use crate::keys::{FAILED, Key};

/// Keys of a stage after the border: which elements the stage keeps, and their lengths.
pub(in crate::dataset) struct StageKeys {
    chains: Vec<ChainKeys>,
    /// The arrays whose lengths are requested, as names and as texts.
    names: Arc<[Name]>,
    pub(super) texts: Vec<String>,
}

/// The origin of an element that a stage made from another element of the record.
pub(super) struct Origin {
    /// The number of the input element.
    pub(super) piece: u32,
    /// The element's position among the elements made from the input element.
    pub(super) at: u32,
    /// The number of elements made from the input element.
    pub(super) count: u32,
}

impl StageKeys {
    /// Finds the keys of `stage`, the last stage of `chains`, with the requested lengths. A pass records them if keys
    /// are recorded. Returns `None` if a chain has no keys, or if there are no chains.
    ///
    /// # Errors
    /// Errors of the search for keys.
    pub(super) fn find<T: 'static>(
        chains: &[Chain<T>],
        stage: StageId,
        planning: &Planning<'_>,
    ) -> Result<Option<Arc<Self>>> {
        if chains.is_empty() {
            return Ok(None);
        }
        let mut found = Vec::with_capacity(chains.len());
        for chain in chains {
            let Some(keys) = chain.keys(planning)? else { return Ok(None) };
            found.push(keys);
        }
        let keys = Arc::new(Self { chains: found, names: planning.names.into(), texts: texts(planning.names) });
        planning.run.add_key_recorder(stage, || Arc::new(StageRecorder(keys.clone())));
        Ok(Some(keys))
    }

    /// Appends the lengths of an element after the stage to `lens`.
    ///
    /// # Errors
    /// Errors of the key lookup.
    pub(super) fn lens(&self, id: ElementId, lens: &mut Vec<u32>) -> Result<()> {
        let chain = self.of(id)?;
        if !chain.has_origins {
            return chain.keys.lens(id.index, id.piece, self.names.len(), lens);
        }
        let pieces = self.pieces(chain, id.index)?;
        lens.extend_from_slice(&self.piece(&pieces, id)?[1..]);
        Ok(())
    }

    /// Returns the origin of an element.
    ///
    /// # Errors
    /// Errors of the key lookup.
    pub(super) fn origin(&self, id: ElementId) -> Result<Origin> {
        let chain = self.of(id)?;
        if !chain.has_origins {
            let Key::Elements(count) = chain.keys.key(id.index, &mut Vec::new())? else { return Err(failed()) };
            return Ok(Origin { piece: 0, at: id.piece, count });
        }
        let pieces = self.pieces(chain, id.index)?;
        let piece = self.piece(&pieces, id)?[0];
        let mut origin = Origin { piece, at: 0, count: 0 };
        for (number, _) in (0..).zip(pieces.chunks_exact(self.width())).filter(|(_, other)| other[0] == piece) {
            origin.at += u32::from(number < id.piece);
            origin.count += 1;
        }
        Ok(origin)
    }

    /// Returns the input element that replaces `id` in requests to the parent. Returns `None` if both have equal
    /// numbers.
    ///
    /// # Errors
    /// Errors of the key lookup.
    pub(super) fn input(&self, id: ElementId) -> Result<Option<ElementId>> {
        match self.of(id)?.has_origins {
            true => Ok(Some(ElementId { piece: self.origin(id)?.piece, ..id })),
            false => Ok(None),
        }
    }

    /// Checks an element against its key. `made` is `None` if the stage dropped the element.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) if the element was dropped or a length differs.
    pub(super) fn check<T: 'static>(&self, made: Option<&T>, id: ElementId) -> Result<()> {
        let Some(made) = made else { return Err(stale("it is dropped, but was kept when its key was made")) };
        if self.names.is_empty() {
            return Ok(());
        }
        let Some(element) = as_element(made).transpose()? else { return Ok(()) };
        let mut lens = Vec::new();
        self.lens(id, &mut lens)?;
        check_lens(&element, &self.names, &lens)
    }

    /// Returns the keys of the chain of an element.
    pub(super) fn of(&self, id: ElementId) -> Result<&ChainKeys> {
        let found = self.chains.iter().find(|found| found.border == id.border);
        found.ok_or_else(|| Error::state("an element was planned for a border that does not exist"))
    }

    /// Numbers stored per piece: the number of the input element, and the lengths.
    fn width(&self) -> usize {
        1 + self.names.len()
    }

    /// Returns the numbers of all pieces in the key of an index, consecutively.
    fn pieces(&self, chain: &ChainKeys, index: u64) -> Result<Vec<u32>> {
        let mut pieces = Vec::new();
        match chain.keys.key(index, &mut pieces)? {
            Key::Elements(_) => Ok(pieces),
            Key::Bad => Err(failed()),
        }
    }

    /// Returns the numbers of the planned piece.
    fn piece<'a>(&self, pieces: &'a [u32], id: ElementId) -> Result<&'a [u32]> {
        let piece = pieces.chunks_exact(self.width()).nth(id.piece as usize);
        piece.filter(|piece| piece[0] < FAILED).ok_or_else(|| {
            let ElementId { index, piece, .. } = id;
            Error::state(format!("element {index} was planned, but its key lacks piece {piece}"))
        })
    }

    /// Returns stand-ins for the elements that the stage makes from the element of a stand-in.
    fn stand_ins(&self, element: &StandIn) -> Result<Vec<StandIn>> {
        let id = element.id()?;
        let chain = self.of(id)?;
        let made = match chain.has_origins {
            true => self.pieces_of(chain, id),
            false => chain.keys.stand_ins(id.border, id.index, &self.names),
        };
        made.map_err(|error| error.index(id.index))
    }

    /// Like [`stand_ins`](Self::stand_ins), for keys with origins.
    fn pieces_of(&self, chain: &ChainKeys, id: ElementId) -> Result<Vec<StandIn>> {
        let pieces = self.pieces(chain, id.index)?;
        let of = |made: &[u32]| made[0] & !FAILED;
        let made = (0..).zip(pieces.chunks_exact(self.width()));
        made.filter(|(_, made)| of(made) == id.piece)
            .map(|(number, made)| match made[0] < FAILED {
                true => Ok(StandIn::new(ElementId { piece: number, ..id }, &self.names, &made[1..])),
                false => Err(failed()),
            })
            .collect()
    }
}

/// The function of a planned stage that makes at most one element from each element.
pub(in crate::dataset) struct ByKey {
    /// The keys; `None` if the stage keeps all elements and no lengths are required.
    pub(super) keys: Option<Arc<StageKeys>>,
    /// The name of the stage.
    pub(super) name: &'static str,
}

impl Facts for ByKey {
    fn name(&self) -> &'static str {
        self.name
    }
}

impl Each<StandIn> for ByKey {
    type Out = StandIn;

    fn apply(&self, _: u64, element: StandIn) -> Result<Option<StandIn>> {
        match &self.keys {
            Some(keys) => Ok(keys.stand_ins(&element)?.pop()),
            None => Ok(Some(element)),
        }
    }
}

/// The function of a planned `flat_map`.
pub(in crate::dataset) struct PiecesByKey(pub(super) Arc<StageKeys>);

impl Facts for PiecesByKey {
    fn name(&self) -> &'static str {
        "flat_map"
    }
}

impl Each<StandIn> for PiecesByKey {
    type Out = Vec<StandIn>;

    fn apply(&self, _: u64, element: StandIn) -> Result<Option<Vec<StandIn>>> {
        self.0.stand_ins(&element).map(Some)
    }
}
