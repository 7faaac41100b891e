//! Arrow IPC format.

use std::path::Path;

use super::facts::{Facts, Turn};
use super::probe::Probe;

pub(super) const FACTS: Facts = Facts {
    // Files, version 1 of Feather, and streams.
    sign: Some((Turn::Magic, |probe| probe.begins(b"ARROW1") || probe.begins(b"FEA1") || begins_stream(probe))),
    is_folder: Some(is_hugging_face),
    ..Facts::of("arrow", &[".arrow", ".feather", ".arrows"])
};

/// Returns true for a stream's marker, followed by a header length that fits and is a multiple of 8, as in all streams.
fn begins_stream(probe: &Probe) -> bool {
    match *probe.head() {
        [0xff, 0xff, 0xff, 0xff, a, b, c, d, ..] => {
            let length = u64::from(u32::from_le_bytes([a, b, c, d]));
            length > 0 && length.is_multiple_of(8) && length <= probe.size - 8
        }
        _ => false,
    }
}

/// Returns true if `save_to_disk` of Hugging Face's `datasets` wrote the folder.
fn is_hugging_face(path: &Path) -> bool {
    let has = |name: &str| path.join(name).is_file();
    has("dataset_dict.json") || (has("state.json") && has("dataset_info.json"))
}
