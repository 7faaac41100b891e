//! Sources of a prefix, each with the stages behind it that see single elements.

use crate::dataset::stage::{Role, Stage, label};

/// A source of a prefix.
pub(super) struct SourceOf {
    /// Its place in memory.
    pub(super) address: usize,
    /// It and the stages behind it that see each element alone, first to last.
    pub(super) lines: Vec<String>,
    pub(super) records: u64,
    /// Whether neither it nor one of the stages is the user's own.
    pub(super) is_native: bool,
    is_mapped: bool,
}

impl SourceOf {
    /// Whether making a key reads nothing of the record.
    pub(super) fn knows_lengths(&self) -> bool {
        self.is_mapped && self.is_alone()
    }

    /// Whether no stage changes what it yields.
    pub(super) fn is_alone(&self) -> bool {
        self.lines.len() == 1
    }
}

/// The sources of `prefix`; the stage that makes an element of several records, or another of the same record elsewhere, is the error.
pub(super) fn sources(prefix: &dyn Stage) -> std::result::Result<Vec<SourceOf>, &dyn Stage> {
    let mut found = Vec::new();
    descend(prefix, true, &mut Vec::new(), &mut found)?;
    Ok(found)
}

/// Goes down to the sources; `behind` are the stages that were passed, the last one first, and `is_native` says that none is the user's own.
fn descend<'a>(
    stage: &'a dyn Stage,
    is_native: bool,
    behind: &mut Vec<String>,
    found: &mut Vec<SourceOf>,
) -> std::result::Result<(), &'a dyn Stage> {
    match (stage.role(), stage.parents().as_slice()) {
        (Role::Source, []) => {
            let lines = std::iter::once(label(stage)).chain(behind.iter().rev().cloned()).collect();
            found.push(SourceOf {
                address: stage.address(),
                lines,
                records: stage.records().ok_or(stage)?,
                is_native: is_native && stage.is_native(),
                is_mapped: stage.is_mapped(),
            });
        }
        // What only orders leads to other records, or to none.
        (Role::Order, parents) if !parents.is_empty() => {
            for parent in parents {
                descend(*parent, is_native, behind, found)?;
            }
        }
        (_, [parent]) if stage.is_by_element() => {
            behind.push(label(stage));
            descend(*parent, is_native && stage.is_native(), behind, found)?;
            behind.pop();
        }
        _ => return Err(stage),
    }
    Ok(())
}
