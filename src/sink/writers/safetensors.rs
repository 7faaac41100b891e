//! Safetensors: the arrays of all elements as rows of tensors.

use super::facts::{Create, Facts, NewShard};
use super::rows::{self, Rows};
use super::{Finished, ShardWriter};
use crate::element::Element;
use crate::error::Result;
use crate::sink::schema::ColumnRules;
use crate::sink::shard_file::ShardFile;
use crate::source::SafetensorsWriter;

pub(super) static FACTS: Facts =
    Facts { keeps_records: false, columns: Some(&COLUMNS), ..Facts::of(".safetensors", open) };

/// Rules that ignore the chosen column, because all columns are written.
static COLUMNS: ColumnRules = ColumnRules { infer: |_| Box::new(Rows::new(None)), ..rows::COLUMNS };

fn open(_: &NewShard<'_>, create: Create<'_>) -> Result<Box<dyn ShardWriter>> {
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
