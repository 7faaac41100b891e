//! TFRecord.

use super::record::record_of;
use super::{Create, Finished, ShardWriter};
use crate::element::Element;
use crate::error::Result;
use crate::sink::shard_file::ShardFile;
use crate::source::{TfRecordWriter, TfRecordWriterOptions};

pub(super) fn open(create: Create<'_>) -> Result<Box<dyn ShardWriter>> {
    // Compressed is the file, by whoever made it.
    Ok(Box::new(TfRecordWriter::new(create(None)?, TfRecordWriterOptions::default())?))
}

impl ShardWriter for TfRecordWriter<ShardFile> {
    fn write(&mut self, element: &Element) -> Result<()> {
        self.write(&record_of(element)?)
    }

    fn finish(self: Box<Self>) -> Result<Finished> {
        Ok((*self).finish()?.into())
    }
}
