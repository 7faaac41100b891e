//! Bagz.

use std::path::{Path, PathBuf};

use super::facts::{Facts, Turn};
use crate::source::files::file_name;

pub(in crate::source) const FACTS: Facts = Facts {
    sign: Some((Turn::End, |probe| ends_with_limits(probe.size, probe.tail()) || limits_path(&probe.path).exists())),
    // A file without records is empty. If the first record is damaged, the reader reports the damage.
    could_be: |_| true,
    ..Facts::of(
        "bagz",
        "Reads the records of Bagz files. `x@4.bagz` stands for four files.\n\n\
         Elements are `bytes`, or dicts if `field`, `examples` or `sequence_examples` is given.",
        &[".bagz", ".bag"],
    )
};

/// Returns the path of the separate file with the limits of a Bagz file.
pub(in crate::source) fn limits_path(path: &Path) -> PathBuf {
    path.with_file_name(format!("limits.{}", file_name(path)))
}

/// Returns true if a file of `size` bytes with this tail may end with limits. The last limit must be the offset of the
/// first, after at least a byte, and the limits in the tail must ascend.
fn ends_with_limits(size: u64, tail: &[u8]) -> bool {
    let Some(end) = tail.last_chunk().copied().map(u64::from_le_bytes) else { return false };
    if end == 0 || end > size.saturating_sub(8) || !(size - end).is_multiple_of(8) {
        return false;
    }
    let seen = (tail.len() as u64).min(size - end) / 8 * 8;
    let (limits, _) = tail[tail.len() - seen as usize..].as_chunks::<8>();
    limits.is_sorted_by_key(|limit| u64::from_le_bytes(*limit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::detect::tests::is;
    use crate::source::formats::Format;

    #[test]
    fn a_tail_of_limits_is_told_from_others() {
        let fits = |file: &[u8]| ends_with_limits(file.len() as u64, &file[file.len().saturating_sub(4096)..]);
        let bag = |records: u64| {
            let mut file = b"oat".repeat(records as usize);
            (1..=records).for_each(|record| file.extend_from_slice(&(record * 3).to_le_bytes()));
            file
        };
        assert!(fits(&bag(1000)) && fits(&bag(1)));
        assert!(!fits(b"") && !fits(b"oat") && !fits(b"some text of no tail") && !fits(&[0; 64]));
        let mut file = bag(1000);
        let at = file.len() - 80;
        file[at] ^= 0xff;
        assert!(!fits(&file));
    }

    #[test]
    fn a_bag_is_known_by_its_tail() {
        let bag = [b"oat".as_slice(), &3u64.to_le_bytes()].concat();
        assert_eq!(is(&bag, "a"), Some(Format::Bagz));
    }
}
