//! Fuzz target.

use super::{TokenLayout, TokenType, bin_layout};
use crate::source::fuzzing::Target;

pub(in crate::source) const TARGETS: &[Target] = &[("tokens", tokens)];

/// Reads the layout of a `.bin` file of token ids.
fn tokens(data: &[u8]) {
    for layout in
        [TokenLayout::Detect, TokenLayout::LlmC, TokenLayout::Bare(TokenType::U16), TokenLayout::Bare(TokenType::U32)]
    {
        if let Ok((start, _)) = bin_layout(data, layout) {
            assert!(start <= data.len());
        }
    }
}
