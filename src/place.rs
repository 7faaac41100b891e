//! Where a file lies: a path of this machine, or the URL of an object in a store.
//!
//! Both travel as a [`Path`], so that whatever takes the one takes the other.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// The scheme of a URL: `s3` of `s3://bucket/key`. A letter by itself is a drive.
pub(crate) fn scheme(path: &Path) -> Option<&str> {
    let (scheme, _) = path.to_str()?.split_once("://")?;
    let is_scheme = scheme.len() > 1
        && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    is_scheme.then_some(scheme)
}

/// Whether it lies in a store, and not on this machine.
pub(crate) fn is_remote(path: &Path) -> bool {
    scheme(path).is_some_and(|scheme| scheme != "file")
}

/// The path that a `file://` URL stands for; any other as it is.
pub(crate) fn local(path: &Path) -> Cow<'_, Path> {
    match path.to_str().and_then(|text| text.strip_prefix("file://")) {
        Some(rest) => Cow::Owned(unescaped(rest.strip_prefix("localhost").unwrap_or(rest))),
        None => Cow::Borrowed(path),
    }
}

/// What may be shown of it: a URL without user, password and query, where signatures stand.
pub(crate) fn shown(path: &Path) -> Cow<'_, Path> {
    let Some(text) = path.to_str().filter(|_| is_remote(path)) else { return Cow::Borrowed(path) };
    let (scheme, rest) = text.split_once("://").unwrap_or_default();
    let is_web = scheme.starts_with("http");
    // In the names of objects a question mark is a letter like others, or stands for one.
    let end = rest.find(['?', '#']).filter(|&at| is_web || rest[at..].contains('=')).unwrap_or(rest.len());
    let host_end = rest.find('/').unwrap_or(rest.len()).min(end);
    let start = rest[..host_end].rfind('@').filter(|_| is_web).map_or(0, |at| at + 1);
    if (start, end) == (0, rest.len()) {
        return Cow::Borrowed(path);
    }
    Cow::Owned(PathBuf::from(format!("{scheme}://{}", &rest[start..end])))
}

/// The last part of a path or URL, for names and messages.
pub(crate) fn file_name(path: &Path) -> Cow<'_, str> {
    let name = |path: &'_ Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    match shown(path) {
        Cow::Borrowed(path) => path.file_name().unwrap_or_default().to_string_lossy(),
        Cow::Owned(path) => Cow::Owned(name(&path)),
    }
}

/// The bytes that `%41` and the like stand for.
fn unescaped(text: &str) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        let code = (first == b'%').then(|| behind.get(..2)).flatten();
        let code = code.and_then(|code| u8::from_str_radix(std::str::from_utf8(code).ok()?, 16).ok());
        bytes.push(code.unwrap_or(first));
        rest = if code.is_some() { &behind[2..] } else { behind };
    }
    PathBuf::from(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_told_from_paths() {
        let remote = |text: &str| is_remote(Path::new(text));
        assert!(remote("s3://b/k") && remote("https://h/p") && remote("abfss://c@a.dfs.core.windows.net/p"));
        assert!(!remote("a/b") && !remote("c://x") && !remote("file:///a") && !remote("1s://b") && !remote("a b://c"));
        assert_eq!(local(Path::new("file:///a/b%20c%zz")), Path::new("/a/b c%zz"));
        assert_eq!(local(Path::new("a%20b")), Path::new("a%20b"));
    }

    #[test]
    fn signatures_and_passwords_are_not_shown() {
        for (given, want) in [
            ("https://user:secret@host/a?X-Amz-Signature=secret", "https://host/a"),
            ("http://host/a/b@c#secret", "http://host/a/b@c"),
            ("https://user:secret@host", "https://host"),
            ("az://container/key?sv=1&sig=secret", "az://container/key"),
            ("s3://bucket/a-??.jsonl", "s3://bucket/a-??.jsonl"),
            ("abfss://container@account/key", "abfss://container@account/key"),
            ("data/a?b=c", "data/a?b=c"),
        ] {
            assert_eq!(shown(Path::new(given)), Path::new(want));
        }
    }
}
