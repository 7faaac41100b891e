//! Fuzz target.

use crate::element::Buffer;
use crate::source::fuzzing::Target;
use crate::source::index::LineIndex;
use crate::source::index_cache::{FolderIndex, decode, entry};

pub(in crate::source) const TARGETS: &[Target] = &[("line_index", line_index)];

/// Indexes the lines of a text. Also decodes the bytes as a cache file of an index.
fn line_index(data: &[u8]) {
    for keep_blank in [false, true] {
        let index = LineIndex::build(data, keep_blank);
        let lines: Vec<&[u8]> =
            (0..index.len()).map(|i| index.line(i, data).expect("a line that was found").1).collect();
        if keep_blank {
            let text = data.strip_prefix(b"\xef\xbb\xbf").filter(|rest| !rest.is_empty()).unwrap_or(data);
            let naive = text.split_inclusive(|&b| b == b'\n').map(|line| {
                let line = line.strip_suffix(b"\n").unwrap_or(line);
                line.strip_suffix(b"\r").unwrap_or(line)
            });
            assert!(naive.eq(lines));
        }
    }
    let file = Buffer::copy_from(data);
    let of_one = entry(data).and_then(|entry| decode(&file, &entry.key));
    let of_many = FolderIndex::decode(file).into_iter().flat_map(|index| index.all());
    for index in of_one.into_iter().chain(of_many).map(LineIndex) {
        for i in 0..index.len().min(1000) {
            index.line(i, data);
        }
    }
}
