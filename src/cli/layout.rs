//! How token files that do not say so themselves are laid out.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};

use crate::Result;
use crate::place::file_name;
use crate::sink::Manifest;
use crate::source::{Format, TokenLayout};

/// What `.bin` files are.
#[derive(clap::Args)]
pub(crate) struct Layout {
    /// What `.bin` files of token ids are: llm.c's header is found by itself, and so is what manifest.json says
    #[arg(long, value_parser = layout(), default_value = "detect")]
    layout: TokenLayout,
}

/// One of the names of layouts.
fn layout() -> impl TypedValueParser<Value = TokenLayout> {
    let names = TokenLayout::NAMES.map(|(name, _)| name);
    PossibleValuesParser::new(names).map(|given| {
        TokenLayout::NAMES
            .iter()
            .find(|(name, _)| *name == given)
            .map_or_else(TokenLayout::default, |(_, layout)| *layout)
    })
}

impl Layout {
    /// That of these files: as it was chosen, or as the manifest of their folder has it.
    ///
    /// # Errors
    /// As [`Manifest::of`].
    pub(crate) fn of(&self, data: &[PathBuf]) -> Result<TokenLayout> {
        match (self.layout, data) {
            // An object whose name says what it is is no folder.
            (TokenLayout::Detect, [file]) if Format::by_name(&file_name(file).to_lowercase()).is_some() => {
                Ok(TokenLayout::Detect)
            }
            (TokenLayout::Detect, [folder]) => Ok(Manifest::of(folder)?.map_or(TokenLayout::Detect, |m| m.layout())),
            (layout, _) => Ok(layout),
        }
    }
}
