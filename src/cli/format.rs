//! Numbers formatted for people.

pub(crate) use crate::report::format::{count, percent, time};
use crate::units::Bytes;
pub(crate) use crate::units::grouped;

/// Formats bytes in binary units: `3 MiB`.
pub(crate) fn bytes(n: u64) -> String {
    Bytes(n).to_string()
}

/// Formats a count with its noun: `1 record`, `7 200 records`.
pub(crate) fn plural(n: u64, what: &str) -> String {
    format!("{} {what}{}", grouped(n), if n == 1 { "" } else { "s" })
}

/// Cuts `text` to `width` characters, with an ellipsis at the end if it is longer.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!([count(7.0), count(1234.0), count(43_210.0), count(4.33e6)], ["7", "1234", "43.2 k", "4.33 M"]);
        assert_eq!([bytes(0), bytes(1023), bytes(3 << 20)], ["0 B", "1023 B", "3 MiB"]);
        assert_eq!([grouped(7), grouped(1234), grouped(123_456)], ["7", "1 234", "123 456"]);
        assert_eq!([plural(1, "file"), plural(1234, "file")], ["1 file", "1 234 files"]);
        assert_eq!([cut("abc", 3), cut("abcd", 3)], ["abc", "ab…"]);
    }
}
