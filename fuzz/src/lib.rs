//! The fuzz targets by name: libFuzzer's binaries and the seeded runner share them.

use gristmill::source::fuzzing;

/// A target: any bytes in, no panic out.
pub type Target = fn(&[u8]);

/// Every target.
pub const TARGETS: &[(&str, Target)] = &[
    ("jsonl", fuzzing::jsonl),
    ("line_index", fuzzing::line_index),
    ("npy", fuzzing::npy),
    ("npz", fuzzing::npz),
    ("tokens", fuzzing::tokens),
    ("stream", fuzzing::stream),
    #[cfg(feature = "parquet")]
    ("parquet", fuzzing::parquet),
    ("checkpoint", checkpoint),
];

/// The state of a run, as a file has it.
fn checkpoint(data: &[u8]) {
    let Ok(json) = std::str::from_utf8(data) else { return };
    if let Ok(checkpoint) = gristmill::Checkpoint::from_json(json) {
        let again = gristmill::Checkpoint::from_json(&checkpoint.to_json()).expect("what it wrote itself");
        assert_eq!(again.to_json(), checkpoint.to_json());
    }
}

/// Runs one target.
///
/// # Panics
/// If there is none of that name, or it found something.
pub fn run(name: &str, data: &[u8]) {
    let (_, target) = TARGETS.iter().find(|(n, _)| *n == name).expect("a target of this name");
    target(data);
}
