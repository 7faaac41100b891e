//! Amounts in human-readable form.
//!
//! [`Bytes`] formats all amounts of memory and of data. Byte counts of a format are printed as whole numbers, because users
//! search for these numbers. Examples are the size of a record or a header, or a limit written in a file.

#[cfg(any(feature = "spec", all(feature = "workers", target_os = "linux")))]
pub(crate) mod budget;
mod shown;

/// Formats a whole number in groups of three digits: `1 234 567`.
pub(crate) fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}

/// Parses an amount of memory: `2GiB`, `512 MiB`, `1.5GB`, `4096`; `None` if it is invalid, or 1 EiB or more.
///
/// ```
/// use gristmill::spec::parse_bytes;
/// assert_eq!(parse_bytes("2GiB"), Some(2 << 30));
/// assert_eq!(parse_bytes("1.5 MB"), Some(1_500_000));
/// assert_eq!(parse_bytes("much"), None);
/// ```
#[allow(unreachable_pub, reason = "public where pipeline files are: it is re-exported there")]
pub fn parse_bytes(text: &str) -> Option<u64> {
    parse_amount(text).filter(|bytes| *bytes < (1u64 << 60) as f64).map(|bytes| bytes as u64)
}

/// Parses an amount of memory, which may be larger than any machine's memory.
pub(crate) fn parse_amount(text: &str) -> Option<f64> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    let unit = match text[end..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "kb" => 1e3,
        "mb" => 1e6,
        "gb" => 1e9,
        "tb" => 1e12,
        "pb" => 1e15,
        "k" | "ki" | "kib" => f64::from(1 << 10),
        "m" | "mi" | "mib" => f64::from(1 << 20),
        "g" | "gi" | "gib" => f64::from(1 << 30),
        "t" | "ti" | "tib" => (1u64 << 40) as f64,
        "p" | "pi" | "pib" => (1u64 << 50) as f64,
        _ => return None,
    };
    Some(number * unit).filter(|bytes| bytes.is_finite())
}

/// Number of bytes that is printed with three digits and a binary unit: `13.7 MiB`. Whole numbers have no decimals: `64 MiB`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bytes(pub(crate) u64);

/// Units with their powers of two, largest first.
const UNITS: [(i32, &str); 6] = [(60, "EiB"), (50, "PiB"), (40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];

impl Bytes {
    /// Returns the power of two of the unit, the unit, and the number of decimals.
    fn scale(self) -> (i32, &'static str, i32) {
        let (power, unit) = UNITS.into_iter().find(|(power, _)| self.0 >> power > 0).unwrap_or((0, "B"));
        let digits = match self.0 >> power {
            _ if power == 0 => 0,
            ..10 => 2,
            10..100 => 1,
            _ => 0,
        };
        (power, unit, digits)
    }

    /// Formats the number of units, with all decimals.
    fn number(self) -> String {
        let (power, _, digits) = self.scale();
        format!("{:.*}", digits as usize, self.0 as f64 / 2f64.powi(power))
    }
}

display_as!(Bytes, |self, f| {
    let (_, unit, digits) = self.scale();
    let text = self.number();
    let text = if digits > 0 { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    write!(f, "{text} {unit}")
});

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bytes_have_three_digits_and_a_unit() {
        let shown = |n: u64| Bytes(n).to_string();
        assert_eq!([0, 1023, 2336, 3 << 20].map(shown), ["0 B", "1023 B", "2.28 KiB", "3 MiB"]);
        assert_eq!([13_700_000, 123 << 30, 9 << 19, u64::MAX].map(shown), ["13.1 MiB", "123 GiB", "4.5 MiB", "16 EiB"]);
    }

    #[test]
    fn amounts_are_read_in_all_the_ways_in_which_they_are_written() {
        for text in ["2GiB", "2 gib", "2Gi", "2G", "2048MiB", "2147483648", " 2147483648b "] {
            assert_eq!(parse_bytes(text), Some(2 << 30), "{text}");
        }
        assert_eq!([parse_bytes("1.5MB"), parse_bytes("200kB")], [Some(1_500_000), Some(200_000)]);
        for text in ["", "much", "-1", "1e9", "2Gb/s", "i", "nan"] {
            assert_eq!(parse_amount(text), None, "{text}");
        }
        assert_eq!((parse_bytes("1024PiB"), parse_amount("1024PiB")), (None, Some(2f64.powi(60))));
    }

    proptest! {
        #[test]
        fn what_is_said_to_be_enough_is(shift in 0u32..40, n in 1u64..1 << 10) {
            let bytes = (n << shift) | n;
            let parsed = |bytes: Bytes| parse_bytes(&bytes.to_string()).unwrap();
            prop_assert!(parsed(Bytes::at_least(bytes)) >= bytes, "{} {}", bytes, Bytes::at_least(bytes));
            prop_assert!(parsed(Bytes::at_most(bytes)) <= bytes, "{} {}", bytes, Bytes::at_most(bytes));
        }
    }
}
