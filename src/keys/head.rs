//! Head of a key file, which identifies the prefix of the keys.

use serde::{Deserialize, Serialize};

use super::Sums;
use super::sealed::{first_that_differs, seal, unseal};
use crate::error::{Error, Result};

/// Format version that this crate writes.
pub const FORMAT: u32 = 1;
/// First bytes of every key file.
const BEGINNING: &[u8] = b"{\"gristmill_keys\":";
/// Maximum number of columns.
const MOST_COLUMNS: usize = 16;
/// Maximum number of slots in a file.
const MOST_SLOTS: u64 = 1 << 48;

/// Identity of a key file: the prefix of its keys, the sources, and the columns of lengths.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyHead {
    /// Hash of the stages, as in a checkpoint.
    pub fingerprint: String,
    /// Stages with their parameters, in post-order. The fingerprint is computed from them, and errors name the first difference.
    #[serde(default)]
    pub stages: Vec<String>,
    /// Line for each source, with its files and their identity.
    #[serde(default)]
    pub sources: Vec<String>,
    /// Names of the arrays whose lengths each element has.
    #[serde(default)]
    pub columns: Vec<String>,
    /// Number of slots; each has a key.
    pub len: u64,
}

#[derive(Serialize)]
struct Written<'a> {
    gristmill_keys: u32,
    #[serde(flatten)]
    head: &'a KeyHead,
}

impl KeyHead {
    /// Creates the head of a file of `len` keys, with a fingerprint and no stages, sources or columns.
    pub fn new(fingerprint: impl Into<String>, len: u64) -> Self {
        Self { fingerprint: fingerprint.into(), stages: Vec::new(), sources: Vec::new(), columns: Vec::new(), len }
    }

    /// Sets the stages.
    #[must_use]
    pub fn stages(self, stages: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { stages: stages.into_iter().map(Into::into).collect(), ..self }
    }

    /// Sets the sources.
    #[must_use]
    pub fn sources(self, sources: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { sources: sources.into_iter().map(Into::into).collect(), ..self }
    }

    /// Sets the columns: the arrays whose lengths are stored.
    #[must_use]
    pub fn columns(self, columns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { columns: columns.into_iter().map(Into::into).collect(), ..self }
    }

    /// Returns the index of a column in the lengths of an element.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column == name)
    }

    /// Checks that a file with this head serves `wanted`: prefix and sources are equal, and all wanted columns exist.
    ///
    /// # Errors
    /// [`ErrorKind::State`](crate::ErrorKind::State) with the first difference in stages, sources or columns.
    pub fn check(&self, wanted: &Self) -> Result<()> {
        self.check_prefix(wanted)?;
        self.lacks(wanted).map_or(Ok(()), |name| {
            let has = if self.columns.is_empty() { "none".to_owned() } else { self.columns.join(", ") };
            Err(stale(Error::state(format!("the keys hold no lengths of {name:?}, the columns are: {has}"))))
        })
    }

    /// Returns the first wanted column that this head lacks.
    pub(super) fn lacks<'a>(&self, wanted: &'a Self) -> Option<&'a str> {
        wanted.columns.iter().map(String::as_str).find(|name| self.column(name).is_none())
    }

    /// Returns true if the stages are equal to `stages`.
    pub(super) fn stages_are(&self, stages: &[String]) -> bool {
        self.stages == stages
    }

    /// Checks that prefix and sources are equal to `wanted`, regardless of the columns.
    pub(super) fn check_prefix(&self, wanted: &Self) -> Result<()> {
        let differs = |what: &str, theirs: &str, ours: &str| {
            Err(stale(Error::state(format!("the keys are of another prefix: {what} was {theirs} and is {ours}"))))
        };
        if self.fingerprint != wanted.fingerprint {
            return match first_that_differs(&self.stages, &wanted.stages) {
                Some((at, theirs, ours)) => differs(&format!("stage {at}"), theirs, ours),
                None => differs("the fingerprint", &self.fingerprint, &wanted.fingerprint),
            };
        }
        if let Some((at, theirs, ours)) = first_that_differs(&self.sources, &wanted.sources) {
            return differs(&format!("source {at}"), theirs, ours);
        }
        match self.len == wanted.len {
            true => Ok(()),
            false => differs("their number", &self.len.to_string(), &wanted.len.to_string()),
        }
    }

    /// Checks that a file can have this head.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if there are too many columns or slots, or if a column is repeated.
    pub(super) fn check_writable(&self) -> Result<()> {
        if self.columns.len() > MOST_COLUMNS {
            let text =
                format!("keys with lengths of {} columns: at most {MOST_COLUMNS} are possible", self.columns.len());
            return Err(Error::config(text));
        }
        if self.len > MOST_SLOTS {
            return Err(Error::config(format!("{} keys, a file holds {MOST_SLOTS} at most", self.len)));
        }
        let twice = self.columns.iter().enumerate().find(|(at, name)| self.column(name) != Some(*at));
        twice.map_or(Ok(()), |(_, name)| Err(Error::config(format!("keys with lengths of {name:?} twice"))))
    }

    /// Returns the head as a line followed by its hash, and the hash.
    pub(super) fn encode(&self) -> (Vec<u8>, u64) {
        seal(&Written { gristmill_keys: FORMAT, head: self })
    }

    /// Reads the head at the start of `bytes`. Returns the head, its hash, and the offset of its end.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) if the head is missing or damaged, [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported)
    /// if its version is unsupported.
    pub(super) fn decode(bytes: &[u8], sums: Sums) -> Result<(Self, u64, usize)> {
        let line = unseal(bytes, BEGINNING, "key file", sums, stale)?;
        let head = Self::parse(line.text).map_err(|e| e.offset(0))?;
        let cannot_be = |e: Error| stale(Error::data(format!("the head is invalid: {}", e.message())).offset(0));
        head.check_writable().map_err(cannot_be)?;
        Ok((head, line.hash, line.end))
    }

    fn parse(line: &[u8]) -> Result<Self> {
        #[derive(Deserialize)]
        struct Version {
            gristmill_keys: u32,
        }
        let none = |e: serde_json::Error| stale(Error::data(format!("the head is invalid: {e}")));
        match serde_json::from_slice(line).map_err(none)? {
            Version { gristmill_keys: FORMAT } => serde_json::from_slice(line).map_err(none),
            Version { gristmill_keys: version } => {
                let text = format!("keys of format {version}, but this gristmill reads format {FORMAT}");
                Err(stale(Error::unsupported(text)))
            }
        }
    }
}

/// Adds the remedy for a file of other keys, or for a file without keys.
#[cold]
pub(super) fn stale(error: Error) -> Error {
    error.help("make it again with `gristmill index --keys`")
}

#[cfg(test)]
mod tests {
    use xxhash_rust::xxh3::xxh3_64;

    use super::super::sealed::HASH;
    use super::*;

    fn head() -> KeyHead {
        KeyHead::new("12ab", 70_000)
            .stages(["jsonl(a.jsonl)", "filter(min=3)"])
            .sources(["a.jsonl 17"])
            .columns(["tokens", "image"])
    }

    #[test]
    fn a_head_is_a_line_of_json() {
        let (bytes, hash) = head().encode();
        let line = std::str::from_utf8(&bytes[..bytes.len() - HASH]).unwrap();
        let expected = r#"{"gristmill_keys":1,"fingerprint":"12ab","stages":["jsonl(a.jsonl)","filter(min=3)"],"sources":["a.jsonl 17"],"columns":["tokens","image"],"len":70000}"#;
        assert_eq!(line, format!("{expected}\n"));
        let mut longer = bytes.clone();
        longer.extend(b"blocks");
        assert_eq!(KeyHead::decode(&longer, Sums::Checked).unwrap(), (head(), hash, bytes.len()));
    }

    #[test]
    fn other_versions_and_files_are_refused() {
        let of = |line: &str| {
            let line = format!("{line}\n");
            let bytes = [line.as_bytes(), &xxh3_64(line.as_bytes()).to_le_bytes()].concat();
            KeyHead::decode(&bytes, Sums::Checked).unwrap_err()
        };
        let error = of(r#"{"gristmill_keys":2,"columns":7}"#);
        assert_eq!(error.kind(), crate::ErrorKind::Unsupported);
        assert_eq!(error.to_string(), "byte 0: keys of format 2, but this gristmill reads format 1");
        for line in
            [r#"{"gristmill_keys":1}"#, r#"{"gristmill_keys":1"#, r#"{"gristmill_keys":"1","fingerprint":"","len":1}"#]
        {
            assert!(of(line).message().starts_with("the head is invalid"), "{line}");
        }
        let many = of(&format!(r#"{{"gristmill_keys":1,"fingerprint":"","len":{}}}"#, u64::MAX));
        assert!(many.message().starts_with("the head is invalid"), "{many}");
        let twice = of(r#"{"gristmill_keys":1,"fingerprint":"","columns":["a","a"],"len":1}"#);
        assert_eq!(twice.message(), "the head is invalid: keys with lengths of \"a\" twice");
        for bytes in [&b""[..], b"{\"gristmill", b"PAR1", b"{\"gristmill_keys\":1}", b"{\"gristmill_keys\":1}\n1234567"]
        {
            let error = KeyHead::decode(bytes, Sums::Checked).unwrap_err();
            assert_eq!(error.help_text(), Some("make it again with `gristmill index --keys`"), "{error}");
        }
    }

    #[test]
    fn the_first_that_differs_is_named() {
        let message = |change: fn(&mut KeyHead)| {
            let mut wanted = head();
            change(&mut wanted);
            let error = head().check(&wanted).unwrap_err();
            assert_eq!(error.kind(), crate::ErrorKind::State);
            error.message().to_owned()
        };
        assert!(head().check(&head()).is_ok());
        assert!(head().check(&head().columns(["image"])).is_ok());
        let changed = |wanted: &mut KeyHead| {
            wanted.fingerprint = "0".into();
            wanted.stages.push("map(f)".into());
        };
        assert_eq!(message(changed), "the keys are of another prefix: stage 2 was nothing and is map(f)");
        assert_eq!(
            message(|wanted| wanted.fingerprint = "0".into()),
            "the keys are of another prefix: the fingerprint was 12ab and is 0"
        );
        assert_eq!(
            message(|wanted| wanted.sources[0] = "a.jsonl 18".into()),
            "the keys are of another prefix: source 0 was a.jsonl 17 and is a.jsonl 18"
        );
        assert_eq!(message(|wanted| wanted.len = 3), "the keys are of another prefix: their number was 70000 and is 3");
        assert_eq!(
            message(|wanted| wanted.columns = vec!["len".into()]),
            "the keys hold no lengths of \"len\", the columns are: tokens, image"
        );
    }
}
