//! Targets of `fuzz/`: parsers of untrusted bytes, in memory. Only in tests and in builds with `--cfg fuzzing`.
//!
//! Each target takes any bytes. It must not panic, hang, or use much more memory than the size of its input.

use crate::Checkpoint;
use crate::sink::Manifest;

/// A fuzz target: takes any bytes and must not panic.
pub type Target = fn(&[u8]);

/// Targets other than the parsers of files.
const OTHERS: &[(&str, Target)] = &[
    ("keys", crate::keys::fuzz_keys),
    ("lanes", crate::keys::fuzz_lanes),
    ("checkpoint", checkpoint),
    ("manifest", manifest),
    #[cfg(feature = "spec")]
    ("pipeline", pipeline),
    #[cfg(all(feature = "workers", target_os = "linux"))]
    ("wire", crate::wire::fuzz_wire),
    #[cfg(all(feature = "workers", target_os = "linux"))]
    ("parcel", crate::wire::fuzz_parcel),
];

/// Returns every target with its name.
pub fn targets() -> impl Iterator<Item = (&'static str, Target)> {
    crate::source::fuzzing::targets().chain(OTHERS.iter().copied())
}

/// Runs the target called `name`.
///
/// # Panics
/// Panics if there is no such target, or if the target fails.
pub fn run(name: &str, data: &[u8]) {
    let (_, target) = targets().find(|(n, _)| *n == name).expect("a target of this name");
    target(data);
}

/// Parses the state of a run.
fn checkpoint(data: &[u8]) {
    let Ok(json) = std::str::from_utf8(data) else { return };
    if let Ok(checkpoint) = Checkpoint::from_json(json) {
        let again = Checkpoint::from_json(&checkpoint.to_json()).expect("its own output");
        assert_eq!(again.to_json(), checkpoint.to_json());
    }
}

/// Parses the manifest of a folder of shards.
fn manifest(data: &[u8]) {
    let Ok(json) = std::str::from_utf8(data) else { return };
    if let Ok(manifest) = Manifest::from_json(json) {
        assert_eq!(Manifest::from_json(&manifest.to_json()).expect("its own output"), manifest);
        assert!(manifest.files().all(|file| file.bytes <= manifest.bytes()));
    }
}

/// Parses a pipeline file, whose first byte selects the format. Does not build the pipeline, because building opens
/// files.
#[cfg(feature = "spec")]
fn pipeline(data: &[u8]) {
    use crate::spec::{Format, Pipeline};
    let Some((first, rest)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(rest) else { return };
    let format = [Format::Yaml, Format::Toml, Format::Json][usize::from(first % 3)];
    if let Ok(pipeline) = Pipeline::from_text(text, format, ".") {
        let json = serde_json::to_string(&pipeline).expect("text serialises");
        serde_json::from_str::<Pipeline>(&json).expect("its own output");
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::path::Path;
    use std::process::Command;

    use super::*;

    /// Returns the folder of the inputs that fuzzing found or kept, by target.
    fn corpus() -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus")
    }

    /// Runs in a separate process without checksums, as in fuzzing.
    #[test]
    fn inputs_that_were_kept_are_survived() {
        if !corpus().exists() {
            return eprintln!("skipped: no fuzz/corpus beside the sources");
        }
        let mut tests = Command::new(std::env::current_exe().unwrap());
        tests.args(["--exact", "fuzzing::tests::inputs", "--ignored"]);
        tests.env(crate::source::checksums::UNCHECKED, "1");
        let output = tests.output().unwrap();
        let told = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && told.contains("1 passed"), "{told}");
    }

    /// `.ci/run fuzz` takes the names of targets from the folder.
    #[cfg(all(feature = "formats", feature = "spec", feature = "workers", target_os = "linux"))]
    #[test]
    fn every_folder_of_inputs_is_a_target() {
        let Ok(folders) = std::fs::read_dir(corpus()) else {
            return eprintln!("skipped: no fuzz/corpus beside the sources");
        };
        for folder in folders.map(|folder| folder.unwrap().file_name()) {
            assert!(targets().any(|(name, _)| *name == *folder), "no target {}", folder.display());
        }
    }

    #[test]
    #[ignore = "run by the test above"]
    fn inputs() {
        for (name, target) in targets() {
            let files = std::fs::read_dir(corpus().join(name)).unwrap_or_else(|e| panic!("no inputs of {name}: {e}"));
            let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
            files.sort();
            assert!(!files.is_empty(), "no inputs of {name}");
            for file in files {
                let data = std::fs::read(&file).unwrap();
                let run = catch_unwind(AssertUnwindSafe(|| target(&data)));
                assert!(run.is_ok(), "{} was not survived: what the panic said stands above", file.display());
            }
        }
    }
}
