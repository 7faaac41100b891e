//! Fuzz target.

use super::Npz;
use crate::element::Buffer;
use crate::source::fuzzing::Target;

pub(in crate::source) const TARGETS: &[Target] = &[("npz", npz)];

/// Decodes a `.npz` file.
fn npz(data: &[u8]) {
    if let Ok(npz) = Npz::of("x.npz".into(), Buffer::copy_from(data)) {
        npz.names().take(8).for_each(|name| drop(npz.array(name)));
    }
}
