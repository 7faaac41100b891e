//! Engine reports of files, kept for the life of a process and passed to its workers, so that each file is checked once.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

use super::load::EngineReport;
use super::options::TokenizerOptions;
use crate::sync::Locked;

/// The hash and length of a `tokenizer.json`, and the load options.
pub(super) type Key = (u128, usize, TokenizerOptions);

static FOUND: Mutex<Option<HashMap<Key, EngineReport>>> = Mutex::new(None);

/// All reports of a process, for transfer to another process.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Known(Vec<(Key, EngineReport)>);

/// Returns the reports so far.
pub(crate) fn known() -> Known {
    let found = found();
    Known(found.iter().flatten().map(|(key, report)| (*key, report.clone())).collect())
}

/// Adds the reports of another process of an identical build.
pub(crate) fn learn(known: Known) {
    found().get_or_insert_default().extend(known.0);
}

/// Returns the report of a file, if the file was checked before.
pub(super) fn recall(key: &Key) -> Option<EngineReport> {
    found().as_ref()?.get(key).cloned()
}

/// Stores the report of a file.
pub(super) fn keep(key: Key, report: &EngineReport) {
    found().get_or_insert_default().insert(key, report.clone());
}

fn found() -> MutexGuard<'static, Option<HashMap<Key, EngineReport>>> {
    FOUND.locked()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::demo::TOKENIZER_JSON;
    use crate::error::Result;
    use crate::text::EngineChoice;
    use crate::text::{EngineReason, Tokenizer};

    /// Makes a file that no other test loads: the demo file with `spaces` trailing spaces.
    pub(crate) fn file(spaces: usize) -> Vec<u8> {
        [TOKENIZER_JSON, &vec![b' '; spaces]].concat()
    }

    /// Stores a report that `file` was compared on `texts` texts.
    pub(crate) fn believe(file: &[u8], texts: usize) -> Result<()> {
        let report = Tokenizer::from_bytes("believed", file)?.engine_report().clone();
        let key = (xxhash_rust::xxh3::xxh3_128(file), file.len(), TokenizerOptions::default());
        keep(key, &EngineReport { reason: EngineReason::Checked { texts }, ..report });
        Ok(())
    }

    #[test]
    fn a_file_is_examined_once() {
        let file = file(1);
        let first = Tokenizer::from_bytes("first", &file).unwrap();
        assert!(matches!(first.engine_report().reason, EngineReason::Checked { texts } if texts > 100));
        let ids = first.encode("The miller sleeps.").unwrap();
        drop(first);
        believe(&file, 7).unwrap();
        let again = Tokenizer::from_bytes("again", &file).unwrap();
        assert_eq!(again.engine_report().reason, EngineReason::Checked { texts: 7 });
        assert_eq!(again.encode("The miller sleeps.").unwrap(), ids);
    }

    #[test]
    fn the_second_engine_serves_again_where_it_was_found_to() {
        let file = file(2);
        let options = TokenizerOptions::default();
        let second = Tokenizer::from_bytes_with("second", &file, options.engine(EngineChoice::Compat)).unwrap();
        let report =
            EngineReport { reason: EngineReason::Differs { difference: "x".into() }, ..second.engine_report().clone() };
        keep((xxhash_rust::xxh3::xxh3_128(&file), file.len(), options), &report);
        assert_eq!(*Tokenizer::from_bytes("auto", &file).unwrap().engine_report(), report);
    }
}
