//! The records of a pipeline that edits of a run exclude.

use std::collections::BTreeSet;
use std::path::Path;

use super::lineage::SourceAt;
use super::node::{Indices, Work, address};
use super::run::upcoming::Upcoming;
use super::stage::{Role, Stage, may_hold};
use crate::edits::{Edits, ExcludedRecords};
use crate::error::{Error, Result};

/// Largest number of sources that an error names.
const MOST_NAMED: usize = 5;

/// Finds the records that `edits` exclude in `pipeline`. Returns `None` if no edit excludes records.
///
/// # Errors
/// [`ErrorKind::Config`](crate::ErrorKind::Config) if no source has a record, or if the pipeline does not show the elements of a record.
pub(super) fn excluded_records(pipeline: &dyn Stage, edits: &Edits) -> Result<Option<ExcludedRecords>> {
    if edits.exclusions().next().is_none() {
        return Ok(None);
    }
    let (mut excluded, mut sources) = (ExcludedRecords::default(), Vec::new());
    let borders = borders(pipeline, &mut excluded.is_held)?;
    for (id, prefix) in &borders {
        let of_prefix = SourceAt::all(*prefix, id - prefix.count());
        check(*prefix, *id, &of_prefix)?;
        sources.extend(of_prefix);
    }
    for (edit, (_, records)) in edits.exclusions().enumerate() {
        for (file, numbers) in records.files() {
            let places = places(&sources, file, numbers)?;
            for place in places {
                excluded.records.entry(place).or_insert(edit);
            }
        }
    }
    excluded.borders = borders.iter().map(|(id, _)| *id).collect();
    Ok(Some(excluded))
}

/// Returns the sources that have the records `numbers` of `file`, and the numbers of the records in the sources.
fn places(sources: &[SourceAt<'_>], file: &str, numbers: &BTreeSet<u64>) -> Result<Vec<(usize, u64)>> {
    let (mut places, mut is_found) = (Vec::new(), vec![false; numbers.len()]);
    let numbers: Vec<u64> = numbers.iter().copied().collect();
    for source in sources {
        for (found, is_found) in source.records_at(Path::new(file), &numbers).into_iter().zip(&mut is_found) {
            *is_found |= found.is_some();
            places.extend(found.map(|record| (source.stage, record)));
        }
    }
    if let Some((number, _)) = numbers.iter().zip(is_found).find(|(_, is_found)| !is_found) {
        let text = format!("`exclude`: no source of the pipeline has record {number} of {file}");
        return Err(Error::config(text).help(format!("the sources are {}", in_words(sources))));
    }
    Ok(places)
}

/// Returns the names of sources, each with its first file.
#[cold]
fn in_words(sources: &[SourceAt<'_>]) -> String {
    let one = |source: &SourceAt<'_>| {
        let file = source.records.record_place(0).map(|(file, _)| format!(", first file {}", file.display()));
        format!("{} (stage {}{})", source.name, source.stage, file.unwrap_or_default())
    };
    let mut named: Vec<_> = sources.iter().take(MOST_NAMED).map(one).collect();
    if sources.len() > MOST_NAMED {
        named.push(format!("and {} more", sources.len() - MOST_NAMED));
    }
    if named.is_empty() {
        "not known: no source with random access is before `to_iter`".to_owned()
    } else {
        named.join(", ")
    }
}

/// Returns the stage id of each border, with the dataset before it. Sets `is_held` if later stages may hold elements between
/// two batches.
///
/// # Errors
/// [`ErrorKind::Config`](crate::ErrorKind::Config) if a stage reads a border again, or by its own order.
fn borders<'a>(pipeline: &'a dyn Stage, is_held: &mut bool) -> Result<Vec<(usize, &'a dyn Stage)>> {
    let (mut borders, mut open) = (Vec::new(), vec![(pipeline.count() - 1, pipeline)]);
    while let Some((id, stage)) = open.pop() {
        let (node, parents) = (stage.node(), stage.parents());
        if node.work == Work::Border && node.role == Role::Order && parents.len() == 1 {
            borders.push((id, parents[0]));
            continue;
        }
        let refused = match node.name {
            "repeat" | "cache" => Some("reads its parents again"),
            "mix" if node.role == Role::Stateful => {
                let repeats = node.describe.params().contains("at_end=repeat");
                repeats.then_some("repeats its parts (`at_end=repeat`)")
            }
            _ if parents.len() > 1 || node.work == Work::Border => Some("reads several streams"),
            _ => None,
        };
        if let Some(why) = refused {
            let text = format!("`exclude` cannot follow records after {} (stage {id}), which {why}", node.name);
            return Err(Error::config(text).help("repeat before `to_iter`, and combine streams by `mix`"));
        }
        *is_held |= node.name != "mix" && may_hold(stage);
        let first = id + 1 - stage.count();
        let mut next = first;
        for parent in parents {
            next += parent.count();
            open.push((next - 1, parent));
        }
    }
    borders.sort_by_key(|(id, _)| *id);
    Ok(borders)
}

/// Checks that the records of the elements of `prefix`, before the border `border`, are known.
fn check(prefix: &dyn Stage, border: usize, sources: &[SourceAt<'_>]) -> Result<()> {
    let (first, mut unknown) = (border - prefix.count(), None);
    prefix.walk(&mut |id, stage| {
        let node = stage.node();
        let is_unknown = matches!(node.indices, Indices::Unknown) && node.source.is_none();
        if is_unknown && node.role != Role::Source {
            unknown.get_or_insert_with(|| format!("{} (stage {})", node.name, first + id));
        }
    });
    if let Some(stage) = unknown {
        let text = format!("`exclude` cannot follow records: {stage} moves elements to unknown indices");
        return Err(Error::config(text).help("move the stage after `to_iter`"));
    }
    let found = Upcoming::follow(&[0], |next| prefix.will_read(next));
    let of_source =
        |source: &SourceAt<'_>| found.iter().filter(|found| found.source == address(source.records)).count();
    if sources.iter().any(|source| of_source(source) > 1) {
        let text = format!(
            "`exclude` cannot leave out a part of an element: elements before stage {border} have several records"
        );
        return Err(Error::config(text).help("make batches and packs after `to_iter`"));
    }
    Ok(())
}
