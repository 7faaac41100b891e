//! MDS folders, recognized by their `index.json`.

use std::path::Path;

use super::facts::{Facts, Turn};
use super::probe::Probe;
use crate::mmap::Access;
use crate::source::content::Content;

pub(in crate::source) const FACTS: Facts = Facts {
    sign: Some((Turn::Json, is_index)),
    is_folder: Some(is_folder),
    ..Facts::of(
        "mds",
        "Reads the samples of MDS folders, the format of MosaicML Streaming.\n\n\
         Elements are dicts of arrays, numbers, text and bytes.",
        &[],
    )
};

/// Returns true if the file is the index of a folder.
fn is_index(probe: &Probe) -> bool {
    let head = probe.head();
    probe.name == "index.json"
        && head.trim_ascii_start().starts_with(b"{")
        && memchr::memmem::find(head, b"\"shards\"").is_some()
}

fn is_folder(path: &Path) -> bool {
    let index = path.join("index.json");
    let content = index.is_file().then(|| Content::open(&index.as_path().into(), Access::Normal).ok()).flatten();
    content.and_then(|content| Probe::new(&content, &index).ok()).is_some_and(|probe| is_index(&probe))
}

#[cfg(test)]
mod tests {
    use crate::source::detect::tests::is;
    use crate::source::formats::Format;

    #[test]
    fn an_index_is_known_by_its_name_and_its_shards() {
        let index = br#"{"shards": [{"format": "mds"}], "version": 2}"#;
        assert_eq!((is(index, "index.json"), is(index, "other.json")), (Some(Format::Mds), Some(Format::Jsonl)));
    }
}
