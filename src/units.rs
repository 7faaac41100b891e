//! Amounts as people write them.

#[cfg(any(feature = "spec", all(feature = "workers", target_os = "linux")))]
use crate::error::{Error, Result};

/// Checks that `bytes` can be a RAM budget: whoever means MiB or GiB and does not say so is told.
///
/// # Errors
/// [`ErrorKind::Config`](crate::ErrorKind::Config) below 1 MiB.
#[cfg(any(feature = "spec", all(feature = "workers", target_os = "linux")))]
pub(crate) fn check_budget(bytes: u64) -> Result<()> {
    if bytes >= 1 << 20 {
        return Ok(());
    }
    let help = format!("a number without a unit counts bytes: did you mean {bytes}MiB?");
    Err(Error::config(format!("ram_budget is {bytes} bytes, and must be 1 MiB or more")).help(help))
}

/// Bytes of an amount of memory: `2GiB`, `512 MiB`, `1.5GB`, `4096`; `None` if it is none.
///
/// ```
/// use gristmill::spec::parse_bytes;
/// assert_eq!(parse_bytes("2GiB"), Some(2 << 30));
/// assert_eq!(parse_bytes("1.5 MB"), Some(1_500_000));
/// assert_eq!(parse_bytes("much"), None);
/// ```
#[allow(unreachable_pub, reason = "public where pipeline files are: it is re-exported there")]
pub fn parse_bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    let unit = match text[end..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "kb" => 1e3,
        "mb" => 1e6,
        "gb" => 1e9,
        "tb" => 1e12,
        "k" | "kib" => f64::from(1 << 10),
        "m" | "mib" => f64::from(1 << 20),
        "g" | "gib" => f64::from(1 << 30),
        "t" | "tib" => (1u64 << 40) as f64,
        _ => return None,
    };
    let bytes = number * unit;
    (bytes.is_finite() && bytes < (1u64 << 60) as f64).then_some(bytes as u64)
}
