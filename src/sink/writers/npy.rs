//! NumPy arrays, whose rows have a fixed type and shape.

use std::io::{Cursor, Write};

use super::facts::{Create, Facts, NewShard};
use super::{Finished, ShardWriter, rows};
use crate::element::Element;
use crate::error::{Error, Result};
use crate::sink::shard_file::ShardFile;
use crate::source::NpyWriter;

pub(super) static FACTS: Facts = Facts { columns: Some(&rows::COLUMNS), ..Facts::of(".npy", open) };

fn open(shard: &NewShard<'_>, create: Create<'_>) -> Result<Box<dyn ShardWriter>> {
    let writer = match &shard.options.column {
        Some(column) => NpyWriter::options().field(column),
        None => NpyWriter::options(),
    };
    Ok(Box::new(Rows { rows: writer.write_back_to(Cursor::new(Vec::new())), file: create(None)? }))
}

/// Rows of a shard, held in memory because the header contains their number.
struct Rows {
    rows: NpyWriter<Cursor<Vec<u8>>>,
    file: ShardFile,
}

impl ShardWriter for Rows {
    fn write(&mut self, element: &Element) -> Result<()> {
        self.rows.write(element)
    }

    fn finish(self: Box<Self>) -> Result<Finished> {
        let Self { rows, mut file } = *self;
        let bytes = rows.finish()?.into_inner();
        file.write_all(&bytes).map_err(Error::of_io)?;
        Ok(file.into())
    }
}
