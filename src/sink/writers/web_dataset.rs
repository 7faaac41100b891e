//! WebDataset's tar files.

use super::{Create, Finished, ShardWriter};
use crate::element::{Element, Value};
use crate::error::Result;
use crate::sink::shard_file::ShardFile;
use crate::source::WebDatasetWriter;

/// The field that names a sample.
const KEY: &str = "__key__";

pub(super) fn open(first_record: u64, create: Create<'_>) -> Result<Box<dyn ShardWriter>> {
    Ok(Box::new(Samples { writer: WebDatasetWriter::new(create(None)?), next: first_record }))
}

struct Samples {
    writer: WebDatasetWriter<ShardFile>,
    /// The number of the next record, which is its key if it has none.
    next: u64,
}

impl ShardWriter for Samples {
    fn write(&mut self, element: &Element) -> Result<()> {
        let number = self.next;
        self.next += 1;
        if let Some(Value::Str(_)) = element.get(KEY) {
            return self.writer.write(element);
        }
        let mut named = element.clone();
        named.insert(KEY, format!("{number:09}").as_str());
        self.writer.write(&named)
    }

    fn finish(self: Box<Self>) -> Result<Finished> {
        Ok(self.writer.finish()?.into())
    }
}
