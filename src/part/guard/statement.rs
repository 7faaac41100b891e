//! Statements of hosts about their pipeline and their batches, as JSON.

use serde::{Deserialize, Serialize};

use super::Guard;
use crate::error::{Error, Result};
use crate::part::Part;

/// Statement of a host about its pipeline and its batches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statement {
    /// Version of gristmill.
    pub version: String,
    /// Hash of the pipeline.
    pub fingerprint: String,
    /// Stages of the pipeline; a source line includes its files. Empty unless details were requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pipeline: Vec<String>,
    /// Stages that are sources: the number of each, and its files if the source lists them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<(usize, Vec<String>)>,
    /// Part that the host takes of every batch.
    pub(super) part: Taken,
    /// Assignment of rows to parts.
    pub deal: String,
    /// Number of delivered batches, including batches before a resume.
    pub batches: u64,
    /// Hash of the state after these batches.
    pub state: String,
    /// Number of the first batch in the digest.
    pub(super) from: u64,
    /// Digest of the batches from there on.
    pub(super) digest: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) trail: Option<Trail>,
    /// Whether the stream has ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ended: bool,
    /// Whether this host waits here for a restarted host, which continues from an earlier batch.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waits: bool,
    /// Whether this host has closed its loader before the end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub closed: bool,
    /// Error that ended the stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

impl Statement {
    /// Creates a statement of the batches in `guard` on a host with `part`. The other fields are empty.
    pub fn new(part: &Part, guard: &Guard) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            fingerprint: String::new(),
            pipeline: Vec::new(),
            sources: Vec::new(),
            part: Taken::of(part),
            deal: String::new(),
            batches: guard.batches(),
            state: String::new(),
            from: guard.from,
            digest: format!("{:032x}", guard.digest()),
            trail: None,
            ended: false,
            waits: false,
            closed: false,
            failed: None,
        }
    }

    /// Updates the batches and the digest from `guard`.
    #[must_use]
    pub fn behind(self, guard: &Guard) -> Self {
        Self { batches: guard.batches(), from: guard.from, digest: format!("{:032x}", guard.digest()), ..self }
    }

    /// Adds details: the stages, the sources, and the marks of the last batches.
    #[must_use]
    pub fn detailed(self, guard: &Guard, pipeline: Vec<String>, sources: Vec<(usize, Vec<String>)>) -> Self {
        Self { pipeline, sources, trail: Some(guard.trail()), ..self }
    }

    /// Returns the statement as a line of JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("strings and numbers serialise")
    }

    /// Returns the part that the host takes of every batch.
    pub(super) fn part(&self) -> Result<Part> {
        self.part.part()
    }

    /// Returns the number of the first batch in the digest, and the digest.
    pub(super) fn digest(&self) -> (u64, &str) {
        (self.from, &self.digest)
    }

    pub(super) fn trail(&self) -> Option<&Trail> {
        self.trail.as_ref()
    }
}

/// Serialized form of a part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Taken {
    Share {
        index: usize,
        count: usize,
    },
    /// Ranges of rows, each as its first row and the row after its last.
    Listed {
        rows: Vec<(usize, usize)>,
        batch: usize,
    },
}

impl Taken {
    fn of(part: &Part) -> Self {
        match (part.as_share(), part.as_listed()) {
            (None, Some((rows, batch))) => {
                let mut ranges: Vec<(usize, usize)> = Vec::new();
                for &row in rows {
                    match ranges.last_mut() {
                        Some((_, end)) if *end == row => *end += 1,
                        _ => ranges.push((row, row + 1)),
                    }
                }
                Self::Listed { rows: ranges, batch }
            }
            (share, _) => {
                let (index, count) = share.unwrap_or_default();
                Self::Share { index, count }
            }
        }
    }

    fn part(&self) -> Result<Part> {
        match self {
            Self::Share { index, count } => {
                let part = Part::of(*index, *count);
                part.check().map(|()| part)
            }
            Self::Listed { rows, batch } => match rows.iter().find(|(_, end)| end > batch) {
                Some((_, end)) => Err(Error::config(format!("rows up to {end} of batches of {batch} rows"))),
                None => Part::listed(rows.iter().flat_map(|&(start, end)| start..end), *batch),
            },
        }
    }
}

/// Property on which hosts compare a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Index,
    Content,
    Plan,
}

/// Mark of a batch: 60 bits of its digest, after four bits for the kind of digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Mark(u64);

impl Mark {
    pub(super) fn new(kind: Kind, digest: u128) -> Self {
        Self((kind as u64) << 60 | (digest >> 68) as u64)
    }

    /// Returns the kind of the digest. Marks of different kinds are not comparable.
    pub(super) fn kind(self) -> u64 {
        self.0 >> 60
    }
}

/// Marks of consecutive batches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Text", into = "Text")]
pub(super) struct Trail {
    pub(super) first: u64,
    pub(super) marks: Vec<Mark>,
}

/// Serialized form of a trail: 16 hexadecimal digits per batch.
#[derive(Serialize, Deserialize)]
struct Text {
    first: u64,
    marks: String,
}

impl Trail {
    /// Returns the numbers of the batches.
    pub(super) fn numbers(&self) -> std::ops::Range<u64> {
        self.first..self.first.saturating_add(self.marks.len() as u64)
    }

    /// Returns the mark of a batch, if the trail contains it.
    pub(super) fn mark(&self, number: u64) -> Option<Mark> {
        self.marks.get(usize::try_from(number.checked_sub(self.first)?).ok()?).copied()
    }
}

impl From<Trail> for Text {
    fn from(trail: Trail) -> Self {
        let marks = trail.marks.iter().map(|mark| format!("{:016x}", mark.0)).collect();
        Self { first: trail.first, marks }
    }
}

impl TryFrom<Text> for Trail {
    type Error = String;

    fn try_from(text: Text) -> Result<Self, String> {
        let digits = text.marks.as_bytes().chunks(16);
        let read = |digits: &[u8]| {
            let digits = std::str::from_utf8(digits).ok().filter(|digits| digits.len() == 16)?;
            u64::from_str_radix(digits, 16).ok().map(Mark)
        };
        let marks = digits.map(read).collect::<Option<_>>().ok_or("marks are 16 hexadecimal digits each")?;
        Ok(Self { first: text.first, marks })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Fed;
    use super::*;

    #[test]
    fn a_statement_is_json_and_comes_back() {
        let mut guard = Guard::new(7);
        (7..400).for_each(|number| guard.feed(number, Fed::Content(u128::from(number) << 70)));
        for part in [Part::of(3, 64), Part::listed([4, 5, 6, 1, 9], 12).unwrap()] {
            let short = Statement { ended: true, ..Statement::new(&part, &guard) };
            assert!(short.to_json().len() < 300, "{}", short.to_json());
            for statement in
                [short.clone(), short.detailed(&guard, vec!["range(0, 9, 1)".into()], vec![(0, vec!["a".into()])])]
            {
                let back: Statement = serde_json::from_str(&statement.to_json()).unwrap();
                assert_eq!((&back, back.part().unwrap()), (&statement, part.clone()));
            }
        }
    }

    #[test]
    fn what_is_no_statement_is_refused() {
        for trail in [
            r#"{"first": 0, "marks": "12"}"#,
            r#"{"first": 0, "marks": "zzzzzzzzzzzzzzzz"}"#,
            r#"{"first": 0, "marks": "äääääääääääääää"}"#,
        ] {
            assert!(serde_json::from_str::<Trail>(trail).is_err(), "{trail}");
        }
        let taken = |json| serde_json::from_str::<Taken>(json).unwrap().part();
        assert!(taken(r#"{"index": 4, "count": 4}"#).is_err());
        assert!(taken(r#"{"rows": [[0, 99999999999999]], "batch": 12}"#).is_err());
    }
}
