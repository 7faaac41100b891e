//! Hashes of files, by their names in Python's `hashlib` and `xxhash`.

use std::collections::BTreeMap;
use std::fmt::Write;

use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};
use xxhash_rust::{xxh3, xxh32, xxh64};

use crate::error::{Error, Result};

/// Names of the supported hashes.
pub(super) const NAMES: [&str; 11] =
    ["md5", "sha1", "sha224", "sha256", "sha384", "sha512", "xxh128", "xxh32", "xxh3_128", "xxh3_64", "xxh64"];

/// Computes a hash in hexadecimal digits. Returns `None` for an unknown name.
pub(super) fn hash(name: &str, bytes: &[u8]) -> Option<String> {
    Some(match name {
        "md5" => hex(&Md5::digest(bytes)),
        "sha1" => hex(&Sha1::digest(bytes)),
        "sha224" => hex(&Sha224::digest(bytes)),
        "sha256" => hex(&Sha256::digest(bytes)),
        "sha384" => hex(&Sha384::digest(bytes)),
        "sha512" => hex(&Sha512::digest(bytes)),
        "xxh32" => hex(&xxh32::xxh32(bytes, 0).to_be_bytes()),
        "xxh64" => hex(&xxh64::xxh64(bytes, 0).to_be_bytes()),
        "xxh3_64" => hex(&xxh3::xxh3_64(bytes).to_be_bytes()),
        "xxh128" | "xxh3_128" => hex(&xxh3::xxh3_128(bytes).to_be_bytes()),
        _ => return None,
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Checks the hashes of a file. Ignores unknown hashes if at least one is known.
///
/// # Errors
/// [`ErrorKind::Data`](crate::ErrorKind::Data) if a hash differs.
/// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if no hash is known.
pub(super) fn check(hashes: &BTreeMap<String, String>, bytes: &[u8]) -> Result<()> {
    let mut checked = false;
    for (name, stored) in hashes {
        let Some(computed) = hash(name, bytes) else { continue };
        if !stored.eq_ignore_ascii_case(&computed) {
            return Err(
                Error::data(format!("the {name} of the file is {computed}, index.json says {stored}")).offset(0)
            );
        }
        checked = true;
    }
    if !checked {
        let names: Vec<&str> = hashes.keys().map(String::as_str).collect();
        let text = match names.is_empty() {
            true => "index.json has no hashes of the file".to_owned(),
            false => format!("no hash of the file is known here: {}", names.join(", ")),
        };
        return Err(Error::unsupported(text).help("read it without checking hashes"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hashes of `b"gristmill"`, computed by Python's `hashlib` and `xxhash`.
    #[test]
    fn known_answers() {
        let known = KNOWN;
        for name in NAMES {
            let (_, want) = known.iter().find(|(known, _)| *known == name).unwrap();
            assert_eq!(hash(name, b"gristmill").unwrap(), *want, "{name}");
        }
        assert_eq!(hash("blake2b", b""), None);
    }

    #[test]
    fn one_that_differs_or_none_that_is_known_is_an_error() {
        let hashes = |pairs: &[(&str, &str)]| pairs.iter().map(|(n, h)| ((*n).to_owned(), (*h).to_owned())).collect();
        let xxh64 = hash("xxh64", b"a").unwrap();
        assert!(check(&hashes(&[("xxh64", &xxh64), ("blake2b", "?")]), b"a").is_ok());
        assert!(check(&hashes(&[("xxh64", &xxh64)]), b"b").unwrap_err().message().contains("the xxh64 of the file"));
        assert!(check(&hashes(&[("blake2b", "?")]), b"a").is_err() && check(&hashes(&[]), b"a").is_err());
    }

    const KNOWN: [(&str, &str); 11] = [
        ("md5", "8764e524fb479159de4b4485f407a3d5"),
        ("sha1", "2c550b312d203c82d68df4e1f1290aeec7fe3445"),
        ("sha224", "8dc591703227946c91d4ca6f457fd1b8509a0dfefaa29ce952cc58d8"),
        ("sha256", "c92d159f2f02c4e24cef46a86663cab6e75dd89335d496dfc8877140aaffbaa1"),
        ("sha384", "347111505b3d180f8233b7a93e6405c672daff5c825d15f32c0c5b1662e599ff941eb0d0114badc89b098e46dab3f3b7"),
        (
            "sha512",
            "4b77e3da270345e7f8838ce0220f4ec32f4bd90f3f823d1d1ba145fde33446371fa74271e076d350545f3196e6bf79bdb0a367378da71243723d365bd9b73810",
        ),
        ("xxh128", "69aca732312df53c06d938fe6e3191d5"),
        ("xxh32", "9f1aab23"),
        ("xxh3_128", "69aca732312df53c06d938fe6e3191d5"),
        ("xxh3_64", "73b61eb046e2e855"),
        ("xxh64", "e1880f44b7a78e74"),
    ];
}
