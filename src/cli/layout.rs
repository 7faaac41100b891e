//! Layout of token files without a description of their layout.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};

use crate::sink::Manifest;
use crate::source::TokenLayout;
use crate::{Result, place};

/// What `.bin` files are.
#[derive(clap::Args)]
#[cfg_attr(test, derive(Default))]
pub(crate) struct Layout {
    /// Layout of `.bin` files of token ids
    ///
    /// `detect` finds llm.c's header, and the layout in manifest.json.
    #[arg(long, value_parser = layout(), default_value = "detect")]
    layout: TokenLayout,
}

/// Makes a parser that accepts the names of the layouts.
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
    /// Returns the layout of these files: the chosen layout, or the layout in the manifest of their folder.
    ///
    /// # Errors
    /// Errors of [`Manifest::of`].
    pub(crate) fn of(&self, data: &[PathBuf]) -> Result<TokenLayout> {
        match (self.layout, data) {
            (TokenLayout::Detect, [folder]) if place::may_be_folder(folder) => {
                Ok(Manifest::of(folder)?.map_or(TokenLayout::Detect, |manifest| manifest.layout()))
            }
            (layout, _) => Ok(layout),
        }
    }
}
