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
    ("example", fuzzing::example),
    ("stream", fuzzing::stream),
    ("megatron", fuzzing::megatron),
    #[cfg(feature = "formats")]
    ("csv", fuzzing::csv),
    #[cfg(feature = "formats")]
    ("safetensors", fuzzing::safetensors),
    #[cfg(feature = "formats")]
    ("bagz", fuzzing::bagz),
    #[cfg(feature = "formats")]
    ("array_record", fuzzing::array_record),
    #[cfg(feature = "formats")]
    ("array_record_recovery", fuzzing::array_record_recovery),
    #[cfg(feature = "formats")]
    ("tf_record", fuzzing::tf_record),
    #[cfg(feature = "formats")]
    ("webdataset", fuzzing::webdataset),
    #[cfg(feature = "formats")]
    ("mds", fuzzing::mds),
    #[cfg(feature = "formats")]
    ("parquet", fuzzing::parquet),
    #[cfg(feature = "formats")]
    ("arrow", fuzzing::arrow),
    ("checkpoint", checkpoint),
    #[cfg(feature = "spec")]
    ("pipeline", pipeline),
    #[cfg(all(feature = "workers", target_os = "linux"))]
    ("wire", gristmill::workers::fuzzing::wire),
];

/// The state of a run, as a file has it.
fn checkpoint(data: &[u8]) {
    let Ok(json) = std::str::from_utf8(data) else { return };
    if let Ok(checkpoint) = gristmill::Checkpoint::from_json(json) {
        let again = gristmill::Checkpoint::from_json(&checkpoint.to_json()).expect("what it wrote itself");
        assert_eq!(again.to_json(), checkpoint.to_json());
    }
}

/// A pipeline file: the first byte chooses the format. Only parsed, because building opens whatever files it names.
#[cfg(feature = "spec")]
fn pipeline(data: &[u8]) {
    use gristmill::spec::{Format, Pipeline};
    let Some((first, rest)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(rest) else { return };
    let format = [Format::Yaml, Format::Toml, Format::Json][usize::from(first % 3)];
    if let Ok(pipeline) = Pipeline::from_text(text, format, ".") {
        let json = serde_json::to_string(&pipeline).expect("text serialises");
        serde_json::from_str::<Pipeline>(&json).expect("what it wrote itself");
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
