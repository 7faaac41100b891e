//! Files of token ids.

use super::{Create, Finished, ShardWriter};
use crate::element::Element;
use crate::error::Result;
use crate::sink::options::SinkOptions;
use crate::sink::shard_file::ShardFile;
use crate::source::TokensWriter;

pub(super) fn open(options: &SinkOptions, create: Create<'_>) -> Result<Box<dyn ShardWriter>> {
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
