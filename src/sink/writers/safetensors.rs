//! Safetensors: the arrays of all elements as the rows of tensors.

use super::{Create, Finished, ShardWriter};
use crate::element::Element;
use crate::error::Result;
use crate::sink::shard_file::ShardFile;
use crate::source::SafetensorsWriter;

pub(super) fn open(create: Create<'_>) -> Result<Box<dyn ShardWriter>> {
    Ok(Box::new(SafetensorsWriter::options().rows(true).write_to(create(None)?)))
}

impl ShardWriter for SafetensorsWriter<ShardFile> {
    fn write(&mut self, element: &Element) -> Result<()> {
        self.write(element)
    }

    fn finish(self: Box<Self>) -> Result<Finished> {
        Ok((*self).finish()?.into())
    }
}
