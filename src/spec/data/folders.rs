//! Checks that files which are read together have a common format.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::source::{Format, detect};

/// The files in a folder that one source reads, going by their names.
struct Group<'a> {
    source: &'static str,
    first: &'a Path,
    count: usize,
}

/// Files that lie directly in one of `folders`, and all `files` together, are read by one source. A file beside the data would be
/// read as such, or the data as what that file is.
///
/// # Errors
/// [`ErrorKind::Config`](crate::ErrorKind::Config) that names the formats, how many files there are of each, and what to write.
pub(super) fn check_one_format(folders: &[PathBuf], files: &[PathBuf]) -> Result<()> {
    for folder in folders.iter().filter(|folder| folder.is_dir()) {
        let groups = groups(files.iter().filter(|file| file.parent() == Some(folder)));
        let Some(most) = groups.iter().max_by_key(|group| group.count).filter(|_| groups.len() > 1) else { continue };
        let told: Vec<String> = groups.iter().map(|group| format!("{} ({})", group.source, group.count)).collect();
        let ending = ending(most.first).unwrap_or_default();
        return Err(Error::config(format!("the folder holds {}", told.join(" and ")))
            .path(folder)
            .help(format!("name one: {}", folder.join(format!("*{ending}")).display())));
    }
    let groups = groups(files.iter());
    if groups.len() < 2 {
        return Ok(());
    }
    let told: Vec<String> =
        groups.iter().map(|group| format!("{} ({}, {})", group.source, group.count, group.first.display())).collect();
    Err(Error::config(format!("these files are {}", told.join(" and "))).help("name files of a single format"))
}

/// Compares names first. If they give several formats, a file of each is read.
fn groups<'a>(files: impl Iterator<Item = &'a PathBuf>) -> Vec<Group<'a>> {
    let mut by_name: Vec<Group<'a>> = Vec::new();
    for file in files {
        let source = named(file).map_or("", Format::source);
        count(&mut by_name, Group { source, first: file, count: 1 });
    }
    if by_name.len() < 2 {
        return by_name;
    }
    let mut by_content = Vec::new();
    for group in by_name {
        // A file that cannot be read is reported by its reader.
        let source = detect(group.first).map_or(group.source, Format::source);
        if !source.is_empty() {
            count(&mut by_content, Group { source, ..group });
        }
    }
    by_content
}

fn count<'a>(groups: &mut Vec<Group<'a>>, more: Group<'a>) {
    match groups.iter_mut().find(|group| group.source == more.source) {
        Some(group) => group.count += more.count,
        None => groups.push(more),
    }
}

fn name(file: &Path) -> String {
    crate::place::file_name(file).to_lowercase()
}

fn named(file: &Path) -> Option<Format> {
    Format::by_name(&name(file))
}

fn ending(file: &Path) -> Option<&'static str> {
    let name = name(file);
    named(file)?.endings().iter().copied().find(|ending| name.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use crate::spec::Data;

    fn refused(files: &[(&str, &str)]) -> Option<String> {
        let dir = tempfile::tempdir().unwrap();
        for (name, content) in files {
            std::fs::write(dir.path().join(name), content).unwrap();
        }
        let error = Data::open(dir.path(), None).err()?;
        let text = format!("{} | {}", error.message(), error.help_text().unwrap_or_default());
        Some(text.replace(&format!("{}/", dir.path().display()), ""))
    }

    #[test]
    fn files_of_several_formats_are_not_read_together() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, content: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, content).map(|()| path).unwrap()
        };
        let files = [file("a.jsonl", "{\"a\": 1}\n"), file("b.txt", "hello\n"), file("c.jsonl", "{\"a\": 1}\n")];
        let error = Data::open(files.to_vec(), None).unwrap_err();
        let text = error.message().replace(&format!("{}/", dir.path().display()), "");
        assert_eq!(text, "these files are jsonl (2, a.jsonl) and lines (1, b.txt)");
        let error = Data::open(dir.path().join("*.*"), None).unwrap_err();
        assert!(error.message().starts_with("these files are jsonl (2, "), "{error}");
        assert!(Data::open([files[0].clone(), files[2].clone()].to_vec(), None).is_ok());
    }

    #[test]
    fn a_folder_of_several_formats_is_named_with_what_is_in_it() {
        let json = "{\"a\": 1}\n";
        let two = [("a.jsonl", json), ("b.txt", "hello\n"), ("c.txt", "hello\n")];
        assert_eq!(refused(&two).unwrap(), "the folder holds jsonl (1) and lines (2) | name one: *.txt");
        let foreign = [("manifest.json", json), ("train.bin", "\0\0")];
        assert_eq!(refused(&foreign).unwrap(), "the folder holds jsonl (1) and tokens (1) | name one: *.bin");
        assert_eq!(refused(&[("a.jsonl", json), ("b.json", json), ("c.ndjson", json)]), None);
        assert_eq!(refused(&[("a.jsonl", json), ("README.txt", "hello\n")]), None);
    }

    #[test]
    fn files_that_describe_the_data_are_no_data() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["dataset_info.json", "Readme.txt", "LICENSE.txt", "a.jsonl"] {
            std::fs::write(dir.path().join(name), "{\"a\": 1}\n").unwrap();
        }
        let names = |patterns: &[std::path::PathBuf]| {
            let files = Data::find(patterns).unwrap();
            files.iter().map(|file| crate::place::file_name(file).into_owned()).collect::<Vec<_>>()
        };
        assert_eq!(names(&[dir.path().to_owned()]), ["a.jsonl"]);
        assert_eq!(names(&[dir.path().join("dataset_info.json")]), ["dataset_info.json"]);
        std::fs::remove_file(dir.path().join("a.jsonl")).unwrap();
        assert_eq!(names(&[dir.path().to_owned()]).len(), 3, "they are all that there is");
    }

    #[test]
    fn a_file_that_is_missing_has_a_similar_name() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("corpus.jsonl"), "{\"a\": 1}\n").unwrap();
        let error = Data::open(dir.path().join("corpus.json"), None).unwrap_err();
        assert_eq!(error.help_text(), Some("did you mean `corpus.jsonl`?"));
    }
}
