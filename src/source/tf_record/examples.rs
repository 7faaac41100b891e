//! Streams of [`Examples`].

use super::{TfRecordIter, TfRecordStream};
use crate::cx::{Cx, StageId};
use crate::dataset::{DatasetIterator, Describe, IterDataset, Node, Role, Stage};
use crate::element::Element;
use crate::error::Result;
use crate::exec::Runtime;
use crate::source::{ExampleParser, Examples, FileState};

impl Stage for Examples<TfRecordStream> {
    fn node(&self) -> Node<'_> {
        Node { describe: self, ..Node::new(self.records.node().name, Role::Source) }
    }
    facts! { parents: Vec::new() }
}

impl Describe for Examples<TfRecordStream> {
    fn params(&self) -> String {
        format!("{}, {}", self.records.node().describe.params(), self.parser)
    }
}

impl IterDataset for Examples<TfRecordStream> {
    type Item = Element;
    type Iter = ExamplesIter;

    fn iter(&self, run: &Runtime) -> Result<ExamplesIter> {
        Ok(ExamplesIter { records: self.records.iter(run)?, parser: self.parser.clone() })
    }
}

/// Iterator over a stream of [`Examples`].
pub struct ExamplesIter {
    records: TfRecordIter,
    parser: ExampleParser,
}

impl DatasetIterator for ExamplesIter {
    type Item = Element;
    type State = FileState;

    fn next(&mut self, cx: &mut Cx) -> Result<Option<Element>> {
        let Some(record) = self.records.next(cx)? else { return Ok(None) };
        // `records` already counted the record.
        let element = cx.consumed(StageId(0), || self.parser.parse(&record));
        element.map(Some).map_err(|e| self.records.blame(e, cx))
    }

    fn state(&self) -> FileState {
        self.records.state()
    }

    fn restore(&mut self, state: FileState, cx: &mut Cx) -> Result<()> {
        self.records.restore(state, cx)
    }
}

debug_as!(ExamplesIter, |self, f| write!(f, "ExamplesIter({:?})", self.records));
