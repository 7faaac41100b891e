//! Search for files that match a glob, including names that are not UTF-8.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use glob::{MatchOptions, Pattern};

use crate::error::{Error, ErrorKind, Result};
use crate::place;

/// A component of a glob, between two separators.
enum Part {
    /// A literal name.
    Literal(OsString),
    /// A pattern for names. Never matches hidden names.
    Names(Pattern),
    /// `**`: any number of folders.
    Folders,
}

/// Returns true if a path is a glob, rather than the name of a file.
pub(super) fn is_glob(pattern: &Path) -> bool {
    pattern.components().any(|component| {
        matches!(component, Component::Normal(name) if name.to_str().is_some_and(|text| text.contains(['*', '?', '['])))
    })
}

/// Returns the files that match `pattern`, sorted. Bytes of a name that are not UTF-8 match as one character each.
///
/// # Errors
/// [`ErrorKind::Config`] if the pattern is not a valid glob; [`ErrorKind::Io`] if a folder cannot be read.
pub(super) fn matching(pattern: &Path) -> Result<Vec<PathBuf>> {
    let (root, parts) = parts(pattern)?;
    // A pattern with a trailing separator matches folders, but no files.
    let asks_for_folders = pattern.to_string_lossy().ends_with(std::path::is_separator);
    let mut files = Vec::new();
    if !asks_for_folders {
        walk(&root, &parts, &mut files)?;
    }
    files.sort();
    files.dedup();
    Ok(files)
}

/// Splits a pattern into the start of the search and the components to match below it.
fn parts(pattern: &Path) -> Result<(PathBuf, Vec<Part>)> {
    let (mut root, mut parts) = (PathBuf::new(), Vec::new());
    for component in pattern.components() {
        match component {
            Component::Prefix(_) | Component::RootDir => root.push(component),
            Component::CurDir => {}
            Component::ParentDir => parts.push(Part::Literal("..".into())),
            Component::Normal(name) => match name.to_str() {
                Some("**") if matches!(parts.last(), Some(Part::Folders)) => {}
                Some("**") => parts.push(Part::Folders),
                Some(text) if text.contains(['*', '?', '[']) => {
                    let text = Pattern::new(text).map_err(|e| {
                        let shown = place::shown(pattern).display().to_string();
                        Error::config(format!("the pattern {shown:?} is not a glob: {}", e.msg))
                    })?;
                    parts.push(Part::Names(text));
                }
                _ => parts.push(Part::Literal(name.to_owned())),
            },
        }
    }
    Ok((root, parts))
}

fn walk(at: &Path, parts: &[Part], files: &mut Vec<PathBuf>) -> Result<()> {
    let Some((part, rest)) = parts.split_first() else {
        if at.is_file() {
            files.push(at.to_owned());
        }
        return Ok(());
    };
    match part {
        Part::Literal(name) => {
            let next = at.join(name);
            if next.symlink_metadata().is_ok() { walk(&next, rest, files) } else { Ok(()) }
        }
        Part::Names(pattern) => {
            let is_wanted = |name: &str| pattern.matches_with(name, MatchOptions::new());
            children(at, is_wanted)?.iter().try_for_each(|child| walk(child, rest, files))
        }
        Part::Folders => {
            walk(at, rest, files)?;
            let folders = children(at, |_| true)?.into_iter().filter(|child| child.is_dir());
            folders.into_iter().try_for_each(|folder| walk(&folder, parts, files))
        }
    }
}

/// Returns the entries of a folder that are not hidden and pass `is_wanted`. Returns no entries if `folder` is not a
/// folder.
fn children(folder: &Path, is_wanted: impl Fn(&str) -> bool) -> Result<Vec<PathBuf>> {
    let here = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    if !here.is_dir() {
        return Ok(Vec::new());
    }
    let failed = |e: std::io::Error| Error::new(ErrorKind::Io, e.to_string()).path(here);
    let mut found = Vec::new();
    for entry in std::fs::read_dir(here).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let text = name.to_string_lossy();
        if !text.starts_with('.') && is_wanted(&text) {
            found.push(folder.join(&name));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a/x/1.txt", "a/x/y/2.txt", "a/.h/3.txt", "b/4.txt", "b/.5.txt"] {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, b"").unwrap();
        }
        dir
    }

    fn found(dir: &Path, pattern: &str) -> Vec<String> {
        let files = matching(&dir.join(pattern)).unwrap();
        files.iter().map(|file| file.strip_prefix(dir).unwrap().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn parts_match_names_and_stars_folders() {
        let dir = folder();
        assert_eq!(found(dir.path(), "*/*.txt"), ["b/4.txt"]);
        assert_eq!(found(dir.path(), "**/*.txt"), ["a/x/1.txt", "a/x/y/2.txt", "b/4.txt"]);
        assert_eq!(found(dir.path(), "**/**/[12].txt"), ["a/x/1.txt", "a/x/y/2.txt"]);
        assert_eq!(found(dir.path(), "a/../?/4.*"), ["a/../b/4.txt"]);
        assert_eq!(found(dir.path(), "b/.*"), [""; 0], "hidden files are named in full");
        assert_eq!(found(dir.path(), "b/4*/"), [""; 0], "no folder has the name");
        let error = matching(&dir.path().join("a**/x")).unwrap_err();
        assert!(error.message().contains("is not a glob"), "{error}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn names_that_are_not_utf_8_stand_beside_others_and_match() {
        use std::os::unix::ffi::OsStrExt;
        let dir = folder();
        let odd = dir.path().join("b").join(std::ffi::OsStr::from_bytes(b"odd\xffname.txt"));
        std::fs::write(&odd, b"").unwrap();
        assert_eq!(found(dir.path(), "b/4*.txt"), ["b/4.txt"]);
        assert_eq!(matching(&dir.path().join("b/odd?name.*")).unwrap(), std::slice::from_ref(&odd));
        let folder = dir.path().join(std::ffi::OsStr::from_bytes(b"\xfe"));
        std::fs::create_dir(&folder).unwrap();
        std::fs::rename(odd, folder.join("one")).unwrap();
        assert_eq!(matching(&folder.join("o*")).unwrap(), [folder.join("one")]);
    }
}
