//! Locations in datasets: `org/name@revision/path`.

use super::Result;
use super::refusal::{Refusal, wrong};

/// Location in a dataset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// `org/name`.
    pub(super) repository: String,
    pub(super) revision: String,
    pub(super) path: String,
    /// `org/name@revision`, as given.
    pub(super) root: String,
}

impl Place {
    pub(super) fn parse(key: &str) -> Result<Self> {
        let mut parts = key.splitn(3, '/');
        let (org, name) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let (name, revision) = name.split_once('@').unwrap_or((name, "main"));
        if org.is_empty() || name.is_empty() || revision.is_empty() || org.contains('@') {
            return Err(wrong(Refusal::NoDataset));
        }
        // Names of branches may contain slashes, which are escaped as in URLs.
        let revision = match revision {
            "~parquet" => "refs/convert/parquet".to_owned(),
            other => other.replace("%2F", "/").replace("%2f", "/"),
        };
        let path = parts.next().unwrap_or_default();
        let root = key[..key.len() - path.len()].trim_end_matches('/').to_owned();
        Ok(Self { repository: format!("{org}/{name}"), revision, path: path.to_owned(), root })
    }

    /// Returns true if the revision is already a commit.
    pub(super) fn is_pinned(&self) -> bool {
        self.revision.len() == 40 && self.revision.bytes().all(|byte| byte.is_ascii_hexdigit())
    }

    /// Returns the organisation and the name.
    pub(super) fn names(&self) -> [&str; 2] {
        self.repository.split_once('/').map_or([&*self.repository, ""], |(org, name)| [org, name])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_repository_a_revision_and_a_path() {
        let place = |key: &str| {
            let place = Place::parse(key).unwrap();
            (place.repository, place.revision, place.path, place.root)
        };
        let words = |words: [&str; 4]| words.map(str::to_owned).into();
        assert_eq!(
            place("org/name@v1.0/data/a.parquet"),
            words(["org/name", "v1.0", "data/a.parquet", "org/name@v1.0"])
        );
        assert_eq!(place("org/name"), words(["org/name", "main", "", "org/name"]));
        assert_eq!(place("org/name@~parquet/x"), words(["org/name", "refs/convert/parquet", "x", "org/name@~parquet"]));
        assert_eq!(place("o/n@refs%2Fpr%2F1/x"), words(["o/n", "refs/pr/1", "x", "o/n@refs%2Fpr%2F1"]));
        for key in ["", "org", "org@main/name", "org/@main/x", "org/name@/x"] {
            assert!(Place::parse(key).is_err(), "{key}");
        }
    }
}
