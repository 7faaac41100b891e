//! Arrow IPC format.

use std::path::Path;

use super::facts::{Facts, Turn};
use super::probe::Probe;

pub(in crate::source) const FACTS: Facts = Facts {
    // Files, version 1 of Feather, and streams.
    sign: Some((Turn::Magic, |probe| probe.begins(b"ARROW1") || probe.begins(b"FEA1") || begins_stream(probe))),
    is_folder: Some(is_hugging_face),
    ..Facts::of(
        "arrow",
        "Reads the rows of Arrow IPC (Feather) files and streams, and of folders written by `datasets.save_to_disk`.\n\n\
         In Python, `paths` may be a table in memory: any object that exports itself through Arrow's C interface, such as \
         tables of pyarrow, Polars, DuckDB and pandas. Only `columns` applies to a table. A `datasets.Dataset` is read \
         with the results of its `shuffle`, `select` and `filter`; its table alone (`dataset.data`) lacks these, and is \
         refused.\n\n\
         Elements are dicts of arrays, numbers, text and lists. Lists of numbers are views of the table's memory, or of \
         files that are not compressed.\n\n\
         TypeError: The argument is neither paths nor a table. The message names the conversion.",
        &[".arrow", ".feather", ".arrows"],
    )
};

/// Returns true for a stream's marker, followed by a header length that fits and is a multiple of 8, as in all streams.
fn begins_stream(probe: &Probe) -> bool {
    if let [0xff, 0xff, 0xff, 0xff, a, b, c, d, ..] = *probe.head() {
        let length = u64::from(u32::from_le_bytes([a, b, c, d]));
        length > 0 && length.is_multiple_of(8) && length <= probe.size - 8
    } else {
        false
    }
}

/// Returns true if `save_to_disk` of Hugging Face's `datasets` wrote the folder.
fn is_hugging_face(path: &Path) -> bool {
    let has = |name: &str| path.join(name).is_file();
    has("dataset_dict.json") || (has("state.json") && has("dataset_info.json"))
}

#[cfg(test)]
mod tests {
    use crate::source::detect::tests::is;
    use crate::source::detect::{detect, detect_folder};
    use crate::source::formats::Format;

    #[test]
    fn arrow_is_known_by_its_marks() {
        let stream = |length: u32, rest: usize| [vec![0xff; 4], length.to_le_bytes().to_vec(), vec![0; rest]].concat();
        for head in [b"ARROW1\0\0".to_vec(), b"FEA1".to_vec(), stream(16, 16)] {
            assert_eq!(is(&head, "x"), Some(Format::Arrow));
        }
        for head in [stream(16, 15), stream(0, 16), stream(12, 16), vec![0xff; 4]] {
            assert_eq!(is(&head, "x"), None);
        }
    }

    #[test]
    fn folders_are_known_by_what_lies_in_them() {
        let dir = tempfile::tempdir().unwrap();
        assert!(detect(dir.path()).unwrap_err().to_string().contains("no data set"));
        std::fs::write(dir.path().join("state.json"), "{}").unwrap();
        assert_eq!(detect_folder(dir.path()), None);
        std::fs::write(dir.path().join("dataset_info.json"), "{}").unwrap();
        assert_eq!(detect(dir.path()).unwrap(), Format::Arrow);
        let url = format!("file://{}", dir.path().display());
        assert_eq!(detect(&url).unwrap(), Format::Arrow);
        assert_eq!(detect(url + "/state.json").unwrap(), Format::Jsonl);
    }
}
