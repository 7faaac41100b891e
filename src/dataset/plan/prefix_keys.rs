//! Keys of the indices of a prefix, looked up by the records that the indices lead to.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use super::Census;
use super::measure::{Measure, failed};
use super::records::RecordsOf;
use super::seen::Seen;
use super::stand_in::StandIn;
use crate::cx::ElementId;
use crate::dataset::map::MapDataset;
use crate::dataset::node::{Indices, address};
use crate::dataset::run::upcoming::{Found, Upcoming};
use crate::dataset::stage::{Role, Stage, label};
use crate::element::Name;
use crate::error::{Error, Result};
use crate::exec::Runtime;
use crate::keys::{Key, KeyBlock, KeySource, Keyed, Keys, Recompute};
use crate::sync::Locked;

/// Keys of a prefix, found across the shuffles, repeats and mixes between its records and its indices.
pub(in crate::dataset) struct PrefixKeys {
    prefix: Arc<dyn Stage + Send + Sync>,
    /// The keys of each source, by the memory address of the source. `None` if every index is a single element without
    /// requested lengths.
    sources: Option<HashMap<usize, Arc<dyn Keys>>>,
    /// The indices that were read last, if the pass has a census.
    seen: Option<Mutex<Seen>>,
}

impl PrefixKeys {
    /// Finds the keys of `prefix`, with the lengths of the arrays `names`. Returns `None` unless each source has keys.
    pub(super) fn find<D>(
        prefix: &Arc<D>,
        names: &[Name],
        measure: Measure<D::Item>,
        run: &Runtime,
    ) -> Result<Option<Arc<Self>>>
    where
        D: MapDataset + 'static,
    {
        let found = match sources(&**prefix) {
            Ok(found) => found,
            Err(stage) => {
                let why = if stage.role() == Role::Source { NO_RECORDS } else { NO_KEYS };
                run.note_unplanned(place_of(&**prefix, stage), |id| format!("{} (stage {id}) {why}", stage.name()));
                return Ok(None);
            }
        };
        let seen = Census::of(run).map(|_| Mutex::new(Seen::new(names.len())));
        // Without a dropped element and without lengths, keys decide nothing.
        if seen.is_some() && names.is_empty() && measure.is_single() && !(&**prefix as &dyn Stage).may_drop() {
            return Ok(Some(Arc::new(Self { prefix: prefix.clone(), sources: None, seen })));
        }
        let kept: &dyn KeySource = match run.keys() {
            Some(kept) => kept,
            None if found.iter().all(SourceOf::knows_lengths) => &Recompute,
            None => {
                run.note_unplanned(0, |_| "there are no keys".to_owned());
                return Ok(None);
            }
        };
        let mut sources = HashMap::new();
        for source in found {
            let address = source.address;
            let keyed: Arc<dyn Keyed> = Arc::new(RecordsOf::new(prefix.clone(), source, names, measure));
            let Some(keys) = kept.find(&keyed)? else {
                run.note_unplanned(0, |_| format!("there are no keys for {}", keyed.lines().join(" → ")));
                return Ok(None);
            };
            sources.insert(address, keys);
        }
        Ok(Some(Arc::new(Self { prefix: prefix.clone(), sources: Some(sources), seen })))
    }

    /// Returns the keys of a prefix that drops nothing, without lengths. Each index is a single element.
    pub(in crate::dataset) fn of_indices<D: MapDataset + 'static>(prefix: &Arc<D>) -> Arc<Self> {
        Arc::new(Self { prefix: prefix.clone(), sources: None, seen: None })
    }

    /// Returns true if these keys were made by [`of_indices`](Self::of_indices).
    pub(super) fn are_of_indices(&self) -> bool {
        self.sources.is_none()
    }

    /// Notes the key of an evaluated index for its record, if keys of the record are recorded.
    pub(super) fn note(&self, index: u64, key: Key, lens: &[u32]) {
        if let [found] = self.follow(&[index]).as_slice()
            && let Ok(keys) = self.keys_of(found.source)
        {
            keys.note(found.record, key, lens);
        }
    }

    /// Notes that a plan has read an index, if the pass has a census.
    pub(super) fn note_read(&self, index: u64) {
        let Some(seen) = &self.seen else { return };
        if let [found] = self.follow(&[index]).as_slice() {
            seen.locked().note(index, found, None);
        }
    }

    /// Notes that a plan has read `indices`, which lead to `found`, in order. `block` has their keys after `before`
    /// earlier keys.
    fn note_block(&self, indices: &[u64], found: &[Found], block: &KeyBlock, before: usize) {
        let Some(seen) = &self.seen else { return };
        seen.locked().note_block(indices, found, block, before);
    }

    /// Returns the indices that were read last, if the pass has a census.
    pub(super) fn seen(&self) -> Option<MutexGuard<'_, Seen>> {
        self.seen.as_ref().map(Locked::locked)
    }

    /// Returns the source of an index, by its memory address.
    pub(super) fn source_of(&self, index: u64) -> Option<usize> {
        self.follow(&[index]).first().map(|found| found.source)
    }

    /// Returns the key of an index, and appends the lengths of each of its elements to `lens`.
    pub(super) fn key(&self, index: u64, lens: &mut Vec<u32>) -> Result<Key> {
        if self.sources.is_none() {
            return Ok(Key::Elements(1));
        }
        match self.follow(&[index]).as_slice() {
            [found] => self.keys_of(found.source)?.key(found.record, lens),
            // An epoch of a mix may lack an element here.
            [] => Ok(Key::Elements(0)),
            _ => Err(Error::state("an index leads to several records")),
        }
    }

    /// Returns a stand-in for each element of an index before border number `border`. `names` are the arrays whose lengths were
    /// requested.
    pub(super) fn stand_ins(&self, border: u32, index: u64, names: &Arc<[Name]>) -> Result<Vec<StandIn>> {
        let (mut lens, width) = (Vec::new(), names.len());
        match self.key(index, &mut lens)? {
            Key::Bad => Err(failed()),
            Key::Elements(count) => {
                let lens_of = |piece: usize| lens.get(piece * width..(piece + 1) * width).unwrap_or_default();
                let stand_in =
                    |piece| StandIn::new(ElementId::new(border, index, piece), names, lens_of(piece as usize));
                Ok((0..count).map(stand_in).collect())
            }
        }
    }

    /// Appends the lengths of element number `piece` of an index to `lens`. `width` is the number of requested arrays.
    pub(super) fn lens(&self, index: u64, piece: u32, width: usize, lens: &mut Vec<u32>) -> Result<()> {
        if let Some(seen) = self.seen.as_ref().filter(|_| piece == 0)
            && let Some(kept) = seen.locked().lens(index)
        {
            lens.extend_from_slice(kept);
            return Ok(());
        }
        let before = lens.len();
        self.key(index, lens)?;
        let first = before.saturating_add(width.saturating_mul(piece as usize)).min(lens.len());
        lens.truncate(first.saturating_add(width));
        lens.drain(before..first);
        if lens.len() == before + width {
            return Ok(());
        }
        Err(Error::state(format!("element {index} was planned, but its key lacks the lengths of piece {piece}")))
    }

    /// Appends the lengths of each of `ids` to `lens`, as [`lens`](Self::lens) does.
    pub(super) fn lens_of(&self, ids: &[ElementId], width: usize, lens: &mut Vec<u32>) -> Result<()> {
        let mut rest = ids;
        if let Some(seen) = &self.seen {
            let seen = seen.locked();
            lens.reserve(ids.len() * width);
            while let Some((id, later)) = rest.split_first() {
                let Some(kept) = seen.lens(id.index).filter(|_| id.piece == 0) else { break };
                match kept {
                    [len] => lens.push(*len),
                    _ => lens.extend_from_slice(kept),
                }
                rest = later;
            }
        }
        rest.iter().try_for_each(|id| self.lens(id.index, id.piece, width, lens))
    }

    /// Appends the keys of `indices`, in any order, to a block with a column for each requested array.
    ///
    /// # Errors
    /// Errors of the key lookup. Some of the keys may have been appended before the error.
    pub(super) fn read(&self, indices: &[u64], into: &mut KeyBlock) -> Result<()> {
        let before = into.len();
        if self.sources.is_none() {
            indices.iter().try_for_each(|_| into.push_of(Key::Elements(1), &[]))?;
            if self.seen.is_none() {
                return Ok(());
            }
        }
        let mut found = self.follow(indices);
        let in_order = |found: &[Found]| {
            found.len() == indices.len() && (0..).zip(found).all(|(place, found)| found.place == place)
        };
        if !in_order(&found) {
            found.sort_by_key(|found| found.place);
        }
        if !in_order(&found) {
            return if self.sources.is_none() { Ok(()) } else { self.read_each(indices, into) };
        }
        if self.sources.is_some() {
            self.read_found(&found, into)?;
        }
        self.note_block(indices, &found, into, before);
        Ok(())
    }

    /// Appends the keys of records in order.
    fn read_found(&self, found: &[Found], into: &mut KeyBlock) -> Result<()> {
        match found.first() {
            Some(first) if found.iter().all(|found| found.source == first.source) => {
                let records: Vec<u64> = found.iter().map(|found| found.record).collect();
                self.keys_of(first.source)?.gather(&records, into)
            }
            _ => self.read_of_several(found, into),
        }
    }

    /// Like [`read`](Self::read), for records of several sources.
    fn read_of_several(&self, found: &[Found], into: &mut KeyBlock) -> Result<()> {
        let mut sources: Vec<(usize, Vec<u64>)> = Vec::new();
        let mut parts = Vec::with_capacity(found.len());
        for Found { source, record, .. } in found {
            let part = sources.iter().position(|(other, _)| other == source).unwrap_or(sources.len());
            if part == sources.len() {
                sources.push((*source, Vec::new()));
            }
            sources[part].1.push(*record);
            parts.push(part);
        }
        let mut blocks = Vec::with_capacity(sources.len());
        for (source, records) in &sources {
            let mut block = KeyBlock::new(into.columns());
            self.keys_of(*source)?.gather(records, &mut block)?;
            blocks.push(block);
        }
        let mut keys: Vec<_> = blocks.iter().map(KeyBlock::iter).collect();
        for part in parts {
            let (key, lens) = keys[part].next().ok_or_else(|| Error::state("fewer keys were found than requested"))?;
            into.push_of(key, lens)?;
        }
        Ok(())
    }

    /// Like [`read`](Self::read), if some indices lead to no record.
    fn read_each(&self, indices: &[u64], into: &mut KeyBlock) -> Result<()> {
        let mut lens = Vec::new();
        for &index in indices {
            lens.clear();
            let key = self.key(index, &mut lens)?;
            into.push_of(key, &lens)?;
        }
        Ok(())
    }

    /// Returns the records that `indices` lead to.
    fn follow(&self, indices: &[u64]) -> Vec<Found> {
        Upcoming::follow(indices, |next| (&*self.prefix as &dyn Stage).will_read(next))
    }

    fn keys_of(&self, source: usize) -> Result<&dyn Keys> {
        let keys = self.sources.as_ref().and_then(|sources| sources.get(&source));
        keys.map(|keys| &**keys)
            .ok_or_else(|| Error::state("an index refers to a source that was not part of the planned pipeline"))
    }
}

/// The reason if a stage before the border prevents keys of single records.
const NO_KEYS: &str = "combines elements or moves them to other indices, and keys describe single records";

/// The reason if a source prevents keys.
const NO_RECORDS: &str = "has no records that can be counted and read singly, and keys describe such records";

/// Returns the position of `stage` among the stages of `prefix`.
fn place_of(prefix: &dyn Stage, stage: &dyn Stage) -> usize {
    let mut place = 0;
    prefix.walk(&mut |id, other| {
        if std::ptr::addr_eq(other, stage) && other.name() == stage.name() {
            place = id;
        }
    });
    place
}

/// A source of a prefix.
pub(super) struct SourceOf {
    /// The memory address of the source.
    pub(super) address: usize,
    /// The fingerprint lines of the source and of later stages that see single elements, first to last.
    pub(super) lines: Vec<String>,
    pub(super) records: u64,
    /// True if neither the source nor a stage calls a user's function.
    pub(super) is_native: bool,
    is_mapped: bool,
}

impl SourceOf {
    /// Returns true if making a key does not read the record.
    pub(super) fn knows_lengths(&self) -> bool {
        self.is_mapped && self.is_alone()
    }

    /// Returns true if no stage changes the elements of the source.
    pub(super) fn is_alone(&self) -> bool {
        self.lines.len() == 1
    }
}

/// Returns the sources of `prefix`. The error is the stage that makes an element from several records, or depends on
/// the element's index.
pub(super) fn sources(prefix: &dyn Stage) -> std::result::Result<Vec<SourceOf>, &dyn Stage> {
    let mut found = Vec::new();
    descend(prefix, true, &mut Vec::new(), &mut found)?;
    Ok(found)
}

/// Descends to the sources. `behind` lists the stages passed so far, last stage first. `is_native` is true if none of
/// them is the user's.
fn descend<'a>(
    stage: &'a dyn Stage,
    is_native: bool,
    behind: &mut Vec<String>,
    found: &mut Vec<SourceOf>,
) -> std::result::Result<(), &'a dyn Stage> {
    let node = stage.node();
    match (node.role, stage.parents().as_slice()) {
        (Role::Source, []) => {
            let source = node.source.ok_or(stage)?;
            found.push(SourceOf {
                address: address(source),
                lines: std::iter::once(label(stage)).chain(behind.iter().rev().cloned()).collect(),
                records: source.records().ok_or(stage)?,
                is_native: is_native && node.is_native,
                is_mapped: source.is_mapped(),
            });
        }
        // An order stage only changes which record an index leads to, or leads to none.
        (Role::Order, parents) if !parents.is_empty() => {
            for parent in parents {
                descend(*parent, is_native, behind, found)?;
            }
        }
        (_, [parent]) if matches!(node.indices, Indices::ByElement) => {
            behind.push(label(stage));
            descend(*parent, is_native && node.is_native, behind, found)?;
            behind.pop();
        }
        _ => return Err(stage),
    }
    Ok(())
}
