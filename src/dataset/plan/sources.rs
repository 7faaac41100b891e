//! The sources of a prefix, each with the later stages that see single elements.

use crate::dataset::node::{Indices, address};
use crate::dataset::stage::{Role, Stage, label};

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
