//! Names that stand for all files of a set: `x@4.bagz`.

use std::path::{Path, PathBuf};

use super::super::files::file_name;

/// The most files that a name stands for: the numbers in their names have five digits.
const MOST: u32 = 99_999;

/// The files that a name stands for: `x@4.bagz` for `x-00000-of-00004.bagz` to `x-00003-of-00004.bagz`, `x@*.bagz` for as many
/// as the name of the first of them says; any other name for itself.
pub(crate) fn expand(path: &Path) -> Vec<PathBuf> {
    let name = file_name(path).into_owned();
    let parts = name.split_once('@').filter(|_| !path.exists());
    let Some((stem, rest)) = parts else { return vec![path.to_owned()] };
    let ending = rest.strip_prefix('*').unwrap_or_else(|| rest.trim_start_matches(|c: char| c.is_ascii_digit()));
    let count = match &rest[..rest.len() - ending.len()] {
        "*" => count_of(path, stem, ending),
        digits => digits.parse().ok(),
    };
    match count.filter(|count| (1..=MOST).contains(count)) {
        Some(count) => {
            (0..count).map(|shard| path.with_file_name(format!("{stem}-{shard:05}-of-{count:05}{ending}"))).collect()
        }
        None => vec![path.to_owned()],
    }
}

/// Counts the files, as the name of the first one says.
fn count_of(path: &Path, stem: &str, ending: &str) -> Option<u32> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let first = format!("{stem}-00000-of-");
    let count = |name: &str| name.strip_prefix(&first)?.strip_suffix(ending)?.parse().ok();
    let names = std::fs::read_dir(folder).ok()?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    // Of two sets of one name neither is meant.
    let mut counts = names.filter_map(|name| count(&name));
    counts.next().filter(|_| counts.next().is_none())
}
