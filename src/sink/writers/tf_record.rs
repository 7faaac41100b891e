//! TFRecord.

use super::record::record_of;
use super::{Create, Finished, ShardWriter};
use crate::element::Element;
use crate::error::Result;
use crate::sink::options::SinkOptions;
use crate::sink::shard_file::ShardFile;
use crate::source::{TfRecordWriter, TfRecordWriterOptions};

pub(super) fn open(options: &SinkOptions, create: Create<'_>) -> Result<Box<dyn ShardWriter>> {
    // Compressed is the file, by whoever made it.
    let writer = TfRecordWriter::new(create(None)?, TfRecordWriterOptions::default())?;
    Ok(Box::new(Records { writer, sequences: options.sequences.clone() }))
}

struct Records {
    writer: TfRecordWriter<ShardFile>,
    sequences: Vec<String>,
}

impl ShardWriter for Records {
    fn write(&mut self, element: &Element) -> Result<()> {
        self.writer.write(&record_of(element, &self.sequences)?)
    }

    fn finish(self: Box<Self>) -> Result<Finished> {
        Ok(self.writer.finish()?.into())
    }
}
