//! Fuzz target.

use super::ArrowOptions;
use crate::source::fuzzing::{Target, contents, opened};

pub(in crate::source) const TARGETS: &[Target] = &[("arrow", arrow)];

/// Opens and reads an Arrow file or stream.
fn arrow(data: &[u8]) {
    opened(ArrowOptions::default().open_contents(contents("x.arrow", data)));
}
