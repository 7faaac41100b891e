//! Megatron's indexed datasets, with two files per shard.

use super::facts::{Create, Facts, NewShard};
use super::tokens::token_options;
use super::{Finished, ShardWriter};
use crate::element::{DType, Element};
use crate::error::{Error, Result};
use crate::sink::shard_file::ShardFile;
use crate::source::{MegatronWriter, TokenType};

pub(super) static FACTS: Facts = Facts { options: token_options, ..Facts::of(".bin", open) };

fn open(NewShard { options, .. }: &NewShard<'_>, create: Create<'_>) -> Result<Box<dyn ShardWriter>> {
    let dtype = match options.token_type {
        TokenType::U16 => DType::U16,
        // The format has no wider unsigned type.
        TokenType::U32 => DType::I32,
    };
    let writer = MegatronWriter::options().dtype(dtype).write_to(create(Some(".bin"))?, create(Some(".idx"))?)?;
    Ok(Box::new(Tokens { writer, column: options.tokens().to_owned() }))
}

/// Adds the help for a missing column.
fn no_column(error: Error) -> Error {
    error.help("name the column of token ids by `column`")
}

struct Tokens {
    writer: MegatronWriter<ShardFile>,
    column: String,
}

impl ShardWriter for Tokens {
    fn write(&mut self, element: &Element) -> Result<()> {
        // The writer expects a column named `tokens`.
        self.writer.write(&Element::new().with("tokens", element.array(&self.column).map_err(no_column)?.clone()))
    }

    fn finish(self: Box<Self>) -> Result<Finished> {
        let (data, index) = self.writer.finish()?;
        Ok(Finished { files: vec![data, index], note: None })
    }
}
