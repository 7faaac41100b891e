//! WebDataset's tar files.

mod endings;

use self::endings::file_name;
use super::facts::{Create, Facts, NewShard, WHOLE_FILE};
use super::{Finished, ShardWriter};
use crate::element::{Element, Value};
use crate::error::Result;
use crate::sink::schema::Schema;
use crate::sink::shard_file::ShardFile;
use crate::source::WebDatasetWriter;

/// The field that names a sample.
const KEY: &str = "__key__";

pub(super) static FACTS: Facts =
    Facts { compressions: WHOLE_FILE, packs_files: true, columns: Some(&endings::COLUMNS), ..Facts::of(".tar", open) };

fn open(shard: &NewShard<'_>, create: Create<'_>) -> Result<Box<dyn ShardWriter>> {
    let writer = WebDatasetWriter::new(create(None)?);
    Ok(Box::new(Samples { writer, schema: shard.schema.cloned(), next: shard.first_record }))
}

struct Samples {
    writer: WebDatasetWriter<ShardFile>,
    /// Columns, which determine whether files are arrays or JSON.
    schema: Option<Schema>,
    /// Number of the next record, which is the key of a record without a key.
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
