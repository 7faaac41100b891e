//! Fuzz target.

use crate::element::Name;
use crate::source::fuzzing::Target;
use crate::source::json::{RepeatedNames, Wanted, record};

pub(in crate::source) const TARGETS: &[Target] = &[("jsonl", jsonl)];

/// Parses a line of JSON. Checks that serde_json accepts the line too, and that a column read alone equals the column
/// among all columns.
fn jsonl(data: &[u8]) {
    let Ok(line) = std::str::from_utf8(data) else { return };
    let all = record(line, &Wanted::All, RepeatedNames::Last);
    if let Ok((element, _)) = &all {
        assert!(serde_json::from_str::<serde_json::Value>(line).is_ok(), "read {line:?}");
        for (name, value) in element.iter().take(4) {
            let one = record(line, &Wanted::Columns(vec![Name::new(name)]), RepeatedNames::Last);
            let (one, _) = one.unwrap_or_else(|e| panic!("{e:?} in {line:?}"));
            assert!(format!("{:?}", one.get(name)) == format!("{:?}", Some(value)), "{line:?}");
        }
    }
}
