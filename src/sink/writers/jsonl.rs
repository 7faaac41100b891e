//! JSON Lines.

use super::facts::{Create, Facts, NewShard, WHOLE_FILE};
use super::{Finished, ShardWriter};
use crate::element::Element;
use crate::error::Result;
use crate::sink::shard_file::ShardFile;
use crate::source::JsonlWriter;

pub(super) static FACTS: Facts = Facts { compressions: WHOLE_FILE, packs_files: true, ..Facts::of(".jsonl", open) };

fn open(_: &NewShard<'_>, create: Create<'_>) -> Result<Box<dyn ShardWriter>> {
    Ok(Box::new(JsonlWriter::new(create(None)?)))
}

impl ShardWriter for JsonlWriter<ShardFile> {
    fn write(&mut self, element: &Element) -> Result<()> {
        self.write(element)
    }

    fn finish(self: Box<Self>) -> Result<Finished> {
        Ok((*self).finish()?.into())
    }
}
