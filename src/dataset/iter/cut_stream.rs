//! The cut of a stream: workers evaluate the functions before it, and this process evaluates the later functions.

use super::IterDataset;
use super::dataset::same_stream;
use crate::dataset::node::Node;
use crate::dataset::stage::Stage;

/// A stream that ends with the last stage in workers. The process that reads the stream applies later functions.
pub(crate) struct CutStream<D>(pub(crate) D);

impl<D: Stage> Stage for CutStream<D> {
    fn node(&self) -> Node<'_> {
        Node { is_cut: true, ..self.0.node() }
    }
    fn parents(&self) -> Vec<&dyn Stage> {
        self.0.parents()
    }
}

same_stream!(CutStream, 0);
