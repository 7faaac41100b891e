//! Description of this build.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::source::Format;
use crate::store;

macro_rules! features {
    ($($name:literal)*) => {
        [$(($name, cfg!(feature = $name))),*]
    };
}

/// Features besides those of formats and stores that a build with a command line may have or lack.
const OTHERS: [(&str, bool); 7] = features!["image" "pjrt" "python" "riegeli" "text-compat" "top" "workers"];

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
    all().into_iter().filter(|(_, is)| *is == has).map(|(name, _)| name).collect()
}

/// All features by their names, and whether this build has them.
fn all() -> BTreeMap<&'static str, bool> {
    let formats = Format::ALL.iter().filter_map(|format| Some((format.feature()?, format.is_built())));
    formats.chain(store::FEATURES.iter().copied()).chain(OTHERS).collect()
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
        assert_eq!(features, all().into_keys().collect::<Vec<_>>());
    }
}
