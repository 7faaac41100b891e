//! Fuzz target.

use super::ArrowOptions;
use crate::element::Buffer;
use crate::source::fuzzing::{Target, some};

pub(in crate::source) const TARGETS: &[Target] = &[("arrow", arrow)];

/// Opens and reads an Arrow file or stream.
fn arrow(data: &[u8]) {
    let contents = vec![("x.arrow".into(), Buffer::copy_from(data).into())];
    if let Ok(source) = ArrowOptions::default().open_contents(contents) {
        some(&source);
    }
}
