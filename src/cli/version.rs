//! Description of this build.

use std::sync::LazyLock;

macro_rules! features {
    ($($name:literal)*) => {
        [$(($name, cfg!(feature = $name))),*]
    };
}

/// Features that a build with a command line may have or lack.
const FEATURES: [(&str, bool); 21] = features![
    "array_record" "arrow" "azure" "bagz" "compress" "csv" "gcs" "http" "image" "mds" "parquet" "pjrt" "python" "riegeli" "s3"
    "safetensors" "text-compat" "tf_record" "top" "webdataset" "workers"
];

/// Returns the version, and the features that this build has and lacks.
pub(super) fn long() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| {
        let list = |has| match features(has) {
            none if none.is_empty() => "none".to_owned(),
            some => some.join(" "),
        };
        format!("{}\nfeatures  {}\nwithout   {}", env!("CARGO_PKG_VERSION"), list(true), list(false))
    });
    &TEXT
}

/// Returns the features that this build has, or lacks.
pub(super) fn features(has: bool) -> Vec<&'static str> {
    FEATURES.iter().filter(|(_, is)| *is == has).map(|(name, _)| *name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_feature_is_in_the_list() {
        let manifest = include_str!("../../Cargo.toml").parse::<toml::Table>().unwrap();
        // The command line requires some of these features; the others are names for groups of features.
        let others = ["cli", "columns", "default", "formats", "full", "spec", "store", "stores", "text"];
        let features = manifest["features"].as_table().unwrap().keys().map(String::as_str);
        let features: Vec<&str> = features.filter(|name| !others.contains(name)).collect();
        assert_eq!(features.len(), FEATURES.len(), "{features:?}");
        assert!(features.iter().all(|name| FEATURES.iter().any(|(known, _)| known == name)), "{features:?}");
    }
}
