//! Names that were probably meant.

use crate::error::Error;

/// Adds the nearest valid name, or all of them.
pub(crate) fn suggest(error: Error, got: &str, valid: impl IntoIterator<Item = &'static str>) -> Error {
    let valid: Vec<_> = valid.into_iter().collect();
    match (nearest(got, valid.iter().copied()), valid.is_empty()) {
        (Some(name), _) => error.help(format!("did you mean `{name}`?")),
        (None, false) => error.help(format!("valid here: {}", valid.join(", "))),
        (None, true) => error,
    }
}

/// The name that `got` is probably a slip of.
pub(crate) fn nearest<'n>(got: &str, valid: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let plain = |s: &str| s.to_lowercase().replace(['-', ' '], "_");
    let got = plain(got);
    let near = |name: &str| {
        let name = plain(name);
        let slips = strsim::osa_distance(&got, &name);
        let score = strsim::jaro_winkler(&got, &name);
        // One measure overrates swapped letters in short words, the other a missing suffix of long words.
        (score > 0.8 || (got.len() >= 2 && slips <= 1 + got.len() / 5)).then_some(score - slips as f64)
    };
    let candidates = valid.into_iter().filter_map(|name| Some((near(name)?, name)));
    Some(candidates.max_by(|a, b| a.0.total_cmp(&b.0))?.1)
}
