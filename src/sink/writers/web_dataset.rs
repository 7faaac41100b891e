//! WebDataset's tar files.

use super::{Create, Finished, ShardWriter};
use crate::element::{Element, Value};
use crate::error::Result;
use crate::sink::schema::Schema;
use crate::sink::schema::endings::file_name;
use crate::sink::shard_file::ShardFile;
use crate::source::WebDatasetWriter;

/// The field that names a sample.
const KEY: &str = "__key__";

pub(super) fn open(schema: Option<&Schema>, first_record: u64, create: Create<'_>) -> Result<Box<dyn ShardWriter>> {
    let writer = WebDatasetWriter::new(create(None)?);
    Ok(Box::new(Samples { writer, schema: schema.cloned(), next: first_record }))
}

struct Samples {
    writer: WebDatasetWriter<ShardFile>,
    /// Which files are arrays, and which are JSON.
    schema: Option<Schema>,
    /// The number of the next record, which is its key if it has none.
    next: u64,
}

impl ShardWriter for Samples {
    fn write(&mut self, element: &Element) -> Result<()> {
        let number = self.next;
        self.next += 1;
        let has_key = matches!(element.get(KEY), Some(Value::Str(_)));
        let mut named = Element::with_capacity(element.len() + 1);
        if !has_key {
            named.insert(KEY, format!("{number:09}").as_str());
        }
        for (name, value) in element.iter() {
            match file_name(self.schema.as_ref(), name, value) {
                Some(file) => named.insert(file, value.clone()),
                None => named.insert(name, value.clone()),
            };
        }
        self.writer.write(&named)
    }

    fn finish(self: Box<Self>) -> Result<Finished> {
        Ok(self.writer.finish()?.into())
    }
}
