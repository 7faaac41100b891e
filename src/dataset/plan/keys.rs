//! Keys of the indices of a prefix: those of the records that they are made of.

use std::collections::HashMap;
use std::sync::Arc;

use super::records::{RecordsOf, Visit};
use crate::dataset::map::MapDataset;
use crate::dataset::run::upcoming::{Record, Upcoming};
use crate::dataset::stage::{Role, Stage, label};
use crate::element::Name;
use crate::error::{Error, Result};
use crate::exec::Runtime;
use crate::keys::{Key, KeySource, Keyed, Keys, Recompute};

/// Keys of a prefix, whatever shuffles, repeats and mixes lie between its records and its indices.
pub(in crate::dataset) struct PrefixKeys {
    prefix: Arc<dyn Stage + Send + Sync>,
    /// By the place of the source in memory; `None` where indices are all that there is to know.
    sources: Option<HashMap<usize, Arc<dyn Keys>>>,
}

impl PrefixKeys {
    /// The keys of `prefix` with the lengths of the arrays of these names, if there are keys for each of its sources.
    pub(super) fn find<D>(
        prefix: &Arc<D>,
        names: &[Name],
        visit: Visit<D::Item>,
        run: &Runtime,
    ) -> Result<Option<Arc<Self>>>
    where
        D: MapDataset + 'static,
    {
        let Some(found) = sources(&**prefix) else { return Ok(None) };
        let kept: &dyn KeySource = match run.keys() {
            Some(kept) => kept,
            None if found.iter().all(SourceOf::knows_lengths) => &Recompute,
            None => return Ok(None),
        };
        let mut sources = HashMap::new();
        for source in found {
            let address = source.address;
            let keyed: Arc<dyn Keyed> = Arc::new(RecordsOf::new(prefix.clone(), source, names, visit));
            let Some(keys) = kept.find(&keyed)? else { return Ok(None) };
            sources.insert(address, keys);
        }
        Ok(Some(Arc::new(Self { prefix: prefix.clone(), sources: Some(sources) })))
    }

    /// The keys of a prefix that drops nothing, of which no lengths are asked: each index is one element.
    pub(in crate::dataset) fn of_indices<D: MapDataset + 'static>(prefix: &Arc<D>) -> Arc<Self> {
        Arc::new(Self { prefix: prefix.clone(), sources: None })
    }

    /// Whether they are those of indices alone.
    pub(super) fn are_of_indices(&self) -> bool {
        self.sources.is_none()
    }

    /// The key of an index, and the lengths of each element that it yields, behind `lens`.
    pub(super) fn key(&self, index: u64, lens: &mut Vec<u32>) -> Result<Key> {
        let Some(sources) = &self.sources else { return Ok(Key::Elements(1)) };
        match Upcoming::follow(index, |next| self.prefix.will_read(next)).as_slice() {
            [(address, Record { index: record, .. })] => match sources.get(address) {
                Some(keys) => keys.key(*record, lens),
                None => {
                    Err(Error::state("an index leads to a source that the pipeline did not have when it was planned"))
                }
            },
            // An epoch of a mix may have no element there.
            [] => Ok(Key::Elements(0)),
            _ => Err(Error::state("an index leads to several records")),
        }
    }
}

/// A source of a prefix.
pub(super) struct SourceOf {
    /// Its place in memory.
    pub(super) address: usize,
    /// It and the stages behind it that see each element alone, first to last.
    pub(super) lines: Vec<String>,
    pub(super) records: u64,
    is_mapped: bool,
}

impl SourceOf {
    /// Whether making a key reads nothing of the record.
    fn knows_lengths(&self) -> bool {
        self.is_mapped && self.lines.len() == 1
    }
}

/// The sources of `prefix`; `None` where an index is made of several records, or what becomes of a record depends on where it stands.
fn sources(prefix: &dyn Stage) -> Option<Vec<SourceOf>> {
    let mut found = Vec::new();
    descend(prefix, &mut Vec::new(), &mut found)?;
    Some(found)
}

/// Goes down to the sources; `behind` are the stages that were passed, the last one first.
fn descend(stage: &dyn Stage, behind: &mut Vec<String>, found: &mut Vec<SourceOf>) -> Option<()> {
    match (stage.role(), stage.parents().as_slice()) {
        (Role::Source, []) => {
            let lines = std::iter::once(label(stage)).chain(behind.iter().rev().cloned()).collect();
            found.push(SourceOf {
                address: stage.address(),
                lines,
                records: stage.records()?,
                is_mapped: stage.is_mapped(),
            });
        }
        // What only orders leads to other records, or to none.
        (Role::Order, parents) if !parents.is_empty() => {
            for parent in parents {
                descend(*parent, behind, found)?;
            }
        }
        (_, [parent]) if stage.is_by_element() => {
            behind.push(label(stage));
            descend(*parent, behind, found)?;
            behind.pop();
        }
        _ => return None,
    }
    Some(())
}
