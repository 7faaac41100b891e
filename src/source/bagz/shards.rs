//! Names that mean all files of a set: `x@4.bagz`.

use std::path::{Path, PathBuf};

use super::super::files::file_name;

/// Most files of a set: the numbers in their names have five digits.
const MOST: u32 = 99_999;

/// Expands a name to the files of its set. `x@4.bagz` means `x-00000-of-00004.bagz` to `x-00003-of-00004.bagz`, and
/// `x@*.bagz` takes the number of files from the name of the first file. Any other name means itself.
pub(crate) fn expand(path: &Path) -> Vec<PathBuf> {
    let name = file_name(path).into_owned();
    let parts = name.split_once('@').filter(|_| !path.exists());
    let Some((stem, rest)) = parts else { return vec![path.to_owned()] };
    let ending = rest.strip_prefix('*').unwrap_or_else(|| rest.trim_start_matches(|c: char| c.is_ascii_digit()));
    let count = match &rest[..rest.len() - ending.len()] {
        "*" => count_of(path, stem, ending),
        digits => digits.parse().ok(),
    };
    if let Some(count) = count.filter(|count| (1..=MOST).contains(count)) {
        (0..count).map(|shard| path.with_file_name(format!("{stem}-{shard:05}-of-{count:05}{ending}"))).collect()
    } else {
        vec![path.to_owned()]
    }
}

/// Returns the number of files according to the name of the first file.
fn count_of(path: &Path, stem: &str, ending: &str) -> Option<u32> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let first = format!("{stem}-00000-of-");
    let count = |name: &str| name.strip_prefix(&first)?.strip_suffix(ending)?.parse().ok();
    let names = std::fs::read_dir(folder).ok()?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    // If there are two sets of this name, the name is ambiguous and means neither.
    let mut counts = names.filter_map(|name| count(&name));
    counts.next().filter(|_| counts.next().is_none())
}
