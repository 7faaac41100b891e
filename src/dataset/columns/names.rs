//! Stages that rename, select or drop columns and change no value. They treat a batch as an element.

use std::sync::Arc;

use super::NamedFn;
use crate::cx::Cx;
use crate::dataset::entry::build;
use crate::dataset::entry::prelude::*;
use crate::dataset::iter::InPlace;
use crate::dataset::map::{BulkRead, GetStacked, Many, Mapped};
use crate::dataset::run::opaque::debug_name;
use crate::dataset::{MapDataset, Node, Stage};
use crate::declare::arguments::About;
use crate::declare::decode::Fields;
use crate::declare::node::Field;
use crate::declare::values::Decode;
use crate::element::{Name, Ragged};
use crate::error::Error;

/// Returns the name of a column before a stage, given its name after the stage; `None` if the stage removes it.
pub(crate) type NameBefore = dyn Fn(&str) -> Option<Name> + Send + Sync;

/// Stage of a function with the same effect on batches.
pub(crate) struct OfNames<D> {
    mapped: Mapped<D, NamedFn<Element>>,
    before: Arc<NameBefore>,
}

impl NamedFn<Element> {
    /// Makes a stage after `parent` from a function of the names of columns.
    pub(crate) fn of_names<D: Stage>(self, parent: D, before: Arc<NameBefore>) -> OfNames<D> {
        OfNames { mapped: self.after(parent), before }
    }
}

debug_name!(OfNames<D>);

impl<D: Stage> Stage for OfNames<D> {
    fn node(&self) -> Node<'_> {
        Node { has_columns: true, ..self.mapped.node() }
    }
    fn parents(&self) -> Vec<&dyn Stage> {
        self.mapped.parents()
    }
}

impl<D: MapDataset<Item = Element>> MapDataset for OfNames<D> {
    type Item = Element;

    fn len(&self) -> u64 {
        self.mapped.len()
    }

    fn get(&self, index: u64, cx: &mut Cx) -> Result<Option<Element>> {
        self.mapped.get(index, cx)
    }

    fn get_many(&self, indices: &[u64], cx: &mut Cx) -> Many<Element> {
        self.mapped.get_many(indices, cx)
    }

    reads_in_bulk!();
}

impl<D: MapDataset<Item = Element>> BulkRead<Element> for OfNames<D> {
    fn get_records(&self, source: usize, records: &[u64], cx: &mut Cx) -> Option<Many<Element>> {
        self.mapped.bulk()?.get_records(source, records, cx)
    }

    fn get_ragged(&self, indices: &[u64], names: &[Name], cx: &mut Cx) -> Option<Ragged> {
        let (parent, _, stage) = self.mapped.parts();
        let rows = parent.bulk()?.get_ragged(indices, &self.names_before(names)?, cx)?;
        cx.produced(stage, rows.len() as u64, 0);
        Some(rows)
    }

    fn get_stacked(&self, indices: &[u64], cx: &mut Cx) -> GetStacked<Element> {
        let (parent, named, stage) = self.mapped.parts();
        let InPlace { batch, len, .. } = parent.bulk()?.get_stacked(indices, cx)?;
        let batch = cx.consumed_many(stage, len, || (named.function)(batch)).ok()??;
        cx.produced(stage, len as u64, 0);
        Some(InPlace { len, bytes: batch.nbytes(), batch })
    }
}

impl<D> OfNames<D> {
    /// Returns the names of these columns before the stage; `None` if a column does not exist after the stage.
    fn names_before(&self, names: &[Name]) -> Option<Vec<Name>> {
        names.iter().map(|name| (self.before)(name)).collect()
    }
}

arguments! {
    struct ColumnsArgs(columns) {
        /// Name of a column, or a list of names.
        columns: Given<Vec<String>>,
    }
}

pub(super) const SELECT: StageEntry =
    StageEntry::each("select_columns", "Keeps only the given columns, in the given order.", &Of(select_columns))
        .new_columns();

pub(super) const DROP: StageEntry =
    StageEntry::each("drop_columns", "Drops the given columns.", &Of(drop_columns)).new_columns();

pub(super) const RENAME: StageEntry = StageEntry::each(
    "rename",
    "Renames columns, from old names to new names: `{text: document}`.\n\n\
     In Python, names can also be keyword arguments: `rename(text=\"document\")`.",
    &Of(rename),
)
.new_columns();

fn select_columns(args: ColumnsArgs, at: &Site<'_>) -> Result<build::OfNames> {
    let columns = at.columns_in(&args.columns)?;
    let kept = columns.clone();
    let before = move |name: &str| kept.iter().any(|kept| kept == name).then(|| Name::new(name));
    let named = NamedFn::map("select_columns", columns.join(", "), move |element: Element| {
        let mut kept = Element::with_capacity(columns.len());
        for name in &columns {
            kept.insert(name, element.field(name)?.clone());
        }
        Ok(kept)
    });
    Ok(build::OfNames(named, Arc::new(before)))
}

fn drop_columns(args: ColumnsArgs, at: &Site<'_>) -> Result<build::OfNames> {
    let columns = at.columns_in(&args.columns)?;
    let dropped = columns.clone();
    let before = move |name: &str| (!dropped.iter().any(|dropped| dropped == name)).then(|| Name::new(name));
    let named = NamedFn::map("drop_columns", columns.join(", "), move |mut element: Element| {
        columns.iter().for_each(|name| drop(element.remove(name)));
        Ok(element)
    });
    Ok(build::OfNames(named, Arc::new(before)))
}

/// From the old names to the new.
struct RenameArgs(Vec<Field>);

impl Arguments for RenameArgs {
    const ABOUT: About = About { free: Some(String::KIND), ..About::NONE };

    fn read(fields: &Fields<'_>) -> Result<Self> {
        Ok(Self(fields.free_entries().to_vec()))
    }
}

fn rename(RenameArgs(names): RenameArgs, at: &Site<'_>) -> Result<build::OfNames> {
    let mut pairs = Vec::new();
    for field in names {
        let new = String::decode(&field.value)?;
        at.check_column(&field.value, &field.key)?;
        if pairs.iter().any(|(_, taken)| *taken == new) {
            return Err(field.value.error(format!("`{new}` is the new name of two columns")));
        }
        pairs.push((field.key, new));
    }
    if pairs.is_empty() {
        return Err(at.error("needs a column and its new name"));
    }
    let params: Vec<_> = pairs.iter().map(|(old, new)| format!("{old}={new}")).collect();
    let known = pairs.clone();
    let before = move |name: &str| match known.iter().find(|(_, new)| new == name) {
        Some((old, _)) => Some(Name::new(old)),
        None => (!known.iter().any(|(old, _)| old == name)).then(|| Name::new(name)),
    };
    let named = NamedFn::map("rename", params.join(", "), move |element| renamed(element, &pairs));
    Ok(build::OfNames(named, Arc::new(before)))
}

fn renamed(element: Element, pairs: &[(String, String)]) -> Result<Element> {
    let mut out = Element::with_capacity(element.len());
    for (name, value) in element.into_fields() {
        let new = pairs.iter().find(|(old, _)| *old == name).map_or(name.as_str(), |(_, new)| new);
        if out.insert(new, value).is_some() {
            return Err(Error::data(format!("two columns are named `{new}` after the renaming")));
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IterDatasetExt;
    use crate::MapDatasetExt;
    use crate::dataset::map::{RandomAccess, Source, SourceFacts};
    use crate::element::{Array, Buffer, DType, RaggedColumn};
    use crate::error::Error;

    /// Has no elements, but columns.
    struct Whole;

    impl RandomAccess for Whole {
        type Record = Element;
        fn len(&self) -> u64 {
            10
        }
        fn read(&self, index: u64) -> Result<Element> {
            Err(Error::data(format!("element {index} was made")))
        }
        fn facts(&self) -> SourceFacts {
            SourceFacts { has_columns: true, ..SourceFacts::new("source", "") }
        }
        fn read_stacked(&self, indices: &[u64]) -> GetStacked<Element> {
            let column = || Array::from_vec(indices.to_vec());
            let batch = Element::new().with("a", column()).with("b", column());
            Some(InPlace { len: indices.len(), bytes: batch.nbytes(), batch })
        }
        fn read_ragged(&self, indices: &[u64], names: &[Name]) -> Option<Ragged> {
            let column = |name: &Name| {
                let mut column = RaggedColumn::new(DType::U8, &[], indices.len());
                let memory = column.add_memory(Buffer::copy_from(name.as_bytes()));
                (0..indices.len()).try_for_each(|row| column.place(row, memory, 0, name.len()))?;
                Some(column)
            };
            let columns = names.iter().map(column).collect::<Option<Vec<_>>>()?;
            columns.into_iter().try_fold(Ragged::new(indices.len()), |rows, column| rows.with_column(column).ok())
        }
    }

    fn only(name: &'static str) -> NamedFn<Element> {
        NamedFn::map("only", name.to_owned(), move |element: Element| {
            Ok(Element::new().with(name, element.field(name)?.clone()))
        })
    }

    fn before() -> Arc<NameBefore> {
        Arc::new(|name| Some(Name::new(name)))
    }

    #[test]
    fn a_batch_is_changed_as_its_elements_would_be() {
        let ds = || only("b").of_names(Source::new(Whole).slice(2..), before()).slice_step(.., -1);
        let column = |batch: &Element| batch.array("b").unwrap().as_slice::<u64>().unwrap().to_vec();
        let all = ds().to_iter().batch(3).collect().unwrap();
        assert_eq!(all.iter().map(column).collect::<Vec<_>>(), [vec![9, 8, 7], vec![6, 5, 4], vec![3, 2]]);
        assert!(all.iter().all(|batch| batch.len() == 1));
        assert_eq!(ds().batch(3).collect().unwrap(), all);
    }

    #[test]
    fn rows_have_the_columns_before_the_stage() {
        let renamed = only("a").of_names(Source::new(Whole), Arc::new(|name| (name == "a").then(|| Name::new("long"))));
        let ds = renamed.slice(2..);
        let rows = |name: &str| ds.bulk().unwrap().get_ragged(&[0, 1], &[Name::new(name)], &mut Cx::default());
        assert_eq!(rows("a").unwrap().columns()[0].cells(1), b"long");
        assert!(rows("b").is_none());
    }

    #[test]
    fn what_it_cannot_do_is_left_to_elements() {
        let made = |ds: OfNames<Source<Whole>>| ds.to_iter().batch(3).collect().unwrap_err().message().to_owned();
        assert_eq!(made(only("c").of_names(Source::new(Whole), before())), "element 0 was made");
        // Any other function sees elements.
        let other = only("b").after(Source::new(Whole));
        assert_eq!(other.to_iter().batch(3).collect().unwrap_err().message(), "element 0 was made");
    }
}
