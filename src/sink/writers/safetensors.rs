//! Safetensors: the arrays of all elements as rows of tensors.

use super::facts::{Create, Facts, NewShard};
use super::rows::{self, Rows};
use super::{ShardWriter, shard_writer};
use crate::error::Result;
use crate::sink::schema::ColumnRules;
use crate::source::SafetensorsWriter;

pub(super) static FACTS: Facts =
    Facts { keeps_records: false, columns: Some(&COLUMNS), ..Facts::of(".safetensors", open) };

/// Rules that ignore the chosen column, because all columns are written.
static COLUMNS: ColumnRules = ColumnRules { infer: |_| Box::new(Rows::new(None)), ..rows::COLUMNS };

fn open(_: &NewShard<'_>, create: Create<'_>) -> Result<Box<dyn ShardWriter>> {
    Ok(Box::new(SafetensorsWriter::options().rows(true).write_to(create(None)?)))
}

shard_writer!(SafetensorsWriter);
