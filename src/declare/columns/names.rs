//! Stages that rename, select or drop columns and change no value. They treat a batch as an element.

use super::NamedFn;
use crate::cx::Cx;
use crate::dataset::iter::InPlace;
use crate::dataset::map::{BulkRead, GetStacked, Many, Mapped};
use crate::dataset::{MapDataset, Node, Stage};
use crate::element::Element;
use crate::error::Result;

/// Stage of a function with the same effect on batches.
#[derive(Debug)]
pub(crate) struct OfNames<D>(Mapped<D, NamedFn<Element>>);

impl NamedFn<Element> {
    /// Makes a stage after `parent` from a function of the names of columns.
    pub(crate) fn of_names<D: Stage>(self, parent: D) -> OfNames<D> {
        OfNames(self.after(parent))
    }
}

impl<D: Stage> Stage for OfNames<D> {
    fn node(&self) -> Node<'_> {
        Node { has_columns: true, ..self.0.node() }
    }
    fn parents(&self) -> Vec<&dyn Stage> {
        self.0.parents()
    }
}

impl<D: MapDataset<Item = Element>> MapDataset for OfNames<D> {
    type Item = Element;

    fn len(&self) -> u64 {
        self.0.len()
    }

    fn get(&self, index: u64, cx: &mut Cx) -> Result<Option<Element>> {
        self.0.get(index, cx)
    }

    fn get_many(&self, indices: &[u64], cx: &mut Cx) -> Many<Element> {
        self.0.get_many(indices, cx)
    }

    fn bulk(&self) -> Option<&dyn BulkRead<Self::Item>> {
        Some(self)
    }
}

impl<D: MapDataset<Item = Element>> BulkRead<Element> for OfNames<D> {
    fn get_records(&self, source: usize, records: &[u64], cx: &mut Cx) -> Option<Many<Element>> {
        self.0.bulk()?.get_records(source, records, cx)
    }

    fn get_stacked(&self, indices: &[u64], cx: &mut Cx) -> GetStacked<Element> {
        let (parent, named, stage) = self.0.parts();
        let InPlace { batch, len, .. } = parent.bulk()?.get_stacked(indices, cx)?;
        let batch = cx.consumed_many(stage, len, || (named.function)(batch)).ok()??;
        cx.produced(stage, len as u64, 0);
        Some(InPlace { len, bytes: batch.nbytes(), batch })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IterDatasetExt;
    use crate::MapDatasetExt;
    use crate::dataset::map::{RandomAccess, Source, SourceFacts};
    use crate::element::Array;
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
    }

    fn only(name: &'static str) -> NamedFn<Element> {
        NamedFn::map("only", name.to_owned(), move |element: Element| {
            Ok(Element::new().with(name, element.field(name)?.clone()))
        })
    }

    #[test]
    fn a_batch_is_changed_as_its_elements_would_be() {
        let ds = || only("b").of_names(Source::new(Whole).slice(2..)).slice_step(.., -1);
        let column = |batch: &Element| batch.array("b").unwrap().as_slice::<u64>().unwrap().to_vec();
        let all = ds().to_iter().batch(3).collect().unwrap();
        assert_eq!(all.iter().map(column).collect::<Vec<_>>(), [vec![9, 8, 7], vec![6, 5, 4], vec![3, 2]]);
        assert!(all.iter().all(|batch| batch.len() == 1));
        assert_eq!(ds().batch(3).collect().unwrap(), all);
    }

    #[test]
    fn what_it_cannot_do_is_left_to_elements() {
        let made = |ds: OfNames<Source<Whole>>| ds.to_iter().batch(3).collect().unwrap_err().message().to_owned();
        assert_eq!(made(only("c").of_names(Source::new(Whole))), "element 0 was made");
        // Any other function sees elements.
        let other = only("b").after(Source::new(Whole));
        assert_eq!(other.to_iter().batch(3).collect().unwrap_err().message(), "element 0 was made");
    }
}
