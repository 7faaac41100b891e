//! Files of token ids.

use serde_json::{Value as Json, json};

use super::facts::{Create, Facts, NewShard};
use super::{Finished, ShardWriter};
use crate::element::Element;
use crate::error::Result;
use crate::sink::options::SinkOptions;
use crate::sink::shard_file::ShardFile;
use crate::source::TokensWriter;

pub(super) static FACTS: Facts = Facts { keeps_records: false, options: token_options, ..Facts::of(".bin", open) };

/// Returns the options of formats that hold only token ids.
pub(super) fn token_options(options: &SinkOptions) -> Vec<(&'static str, Json)> {
    vec![("token_type", json!(options.token_type.dtype().name())), ("bare", json!(options.bare))]
}

fn open(NewShard { options, .. }: &NewShard<'_>, create: Create<'_>) -> Result<Box<dyn ShardWriter>> {
    let file = create(None)?;
    let writer = match options.bare {
        true => TokensWriter::bare(file, options.token_type),
        false => TokensWriter::llm_c(file, options.token_type),
    };
    Ok(Box::new(writer.column(options.tokens())))
}

impl ShardWriter for TokensWriter<ShardFile> {
    fn write(&mut self, element: &Element) -> Result<()> {
        self.write(element)
            .map_err(|e| e.help("name the column of token ids by `column`, and choose a type that holds them"))
    }

    fn finish(self: Box<Self>) -> Result<Finished> {
        Ok((*self).finish()?.into())
    }
}
