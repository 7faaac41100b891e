//! The view that records a pass.

use std::path::Path;

use super::{Live, View};
use crate::cx::Cursor;
use crate::error::Result;
use crate::report::Depth;
use crate::report::record::RecordWriter;

/// A recording that is extended while a pass runs.
#[derive(Debug)]
pub(crate) struct RecordView {
    writer: RecordWriter,
    cursor: Cursor,
}

impl RecordView {
    /// Creates a recording at `path`.
    ///
    /// # Errors
    /// The errors of [`RecordWriter::create`].
    pub(crate) fn create(path: &Path) -> Result<Self> {
        Ok(Self { writer: RecordWriter::create(path)?, cursor: Cursor::default() })
    }
}

impl View for RecordView {
    fn look(&mut self, live: &Live, end: bool) -> Result<()> {
        let Some(report) = live.report(Depth::Named) else { return Ok(()) };
        let update = live.updates(&mut self.cursor, end);
        self.writer.add(&update, &report, end).map_err(|error| error.help("nothing more of the run is recorded"))
    }
}
