//! TFRecord.

use super::facts::{Create, Facts, NewShard};
use super::record::record_of;
use super::{Finished, ShardWriter};
use crate::element::Element;
use crate::error::Result;
use crate::sink::compression::Compression;
use crate::sink::shard_file::ShardFile;
use crate::source::{TfRecordWriter, TfRecordWriterOptions};

pub(super) static FACTS: Facts = Facts {
    compressions: &[(Compression::None, ""), (Compression::Gzip(6), ".gz")],
    packs_files: true,
    holds_examples: true,
    ..Facts::of(".tfrecord", open)
};

fn open(NewShard { options, .. }: &NewShard<'_>, create: Create<'_>) -> Result<Box<dyn ShardWriter>> {
    // The file is compressed by `ShardFile`, not by this writer.
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
