//! JSON Lines.

use super::facts::{Create, Facts, NewShard, WHOLE_FILE};
use super::{ShardWriter, shard_writer};
use crate::error::Result;
use crate::source::JsonlWriter;

pub(super) static FACTS: Facts = Facts { compressions: WHOLE_FILE, packs_files: true, ..Facts::of(".jsonl", open) };

fn open(_: &NewShard<'_>, create: Create<'_>) -> Result<Box<dyn ShardWriter>> {
    Ok(Box::new(JsonlWriter::new(create(None)?)))
}

shard_writer!(JsonlWriter);
