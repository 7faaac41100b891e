//! Files on which both engines were held against each other when this version was made: builds without the second engine run them on the fast one.

use super::fast;
use super::known::Key;
use super::load::{EngineReason, EngineReport};
use super::options::TokenizerOptions;

/// Hash (XXH3, 128 bits) and length of a file, and the number of probe texts on which both engines agree.
const PROVEN: [(u128, usize, usize); 1] = [
    // The demo's.
    (0xc3ce_674b_d715_172a_bcfd_f4ae_6442_78f6, 94_298, 418),
];

/// Returns the finding about a file, if it is one of these, loaded without options.
pub(super) fn recall((hash, len, options): &Key) -> Option<EngineReport> {
    let texts = PROVEN.iter().find(|proven| (proven.0, proven.1) == (*hash, *len))?.2;
    let report = EngineReport { engine: fast::NAME.to_owned(), reason: EngineReason::Checked { texts }, slowdown: 1.0 };
    (*options == TokenizerOptions::default()).then_some(report)
}

#[cfg(all(test, feature = "text-compat"))]
mod tests {
    use super::*;
    use crate::demo::TOKENIZER_JSON;
    use crate::text::load::load;

    #[test]
    fn what_is_said_of_files_is_what_comparing_them_gives() {
        let (file, options) = (TOKENIZER_JSON, TokenizerOptions::default());
        let key = (xxhash_rust::xxh3::xxh3_128(file), file.len(), options);
        let compared = load(file, &options, None).unwrap().report;
        assert_eq!(recall(&key), Some(compared), "({:#034x}, {}, _)", key.0, key.1);
        assert_eq!(recall(&(key.0, key.1, options.special_in_text(true))), None);
    }
}
