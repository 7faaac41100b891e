//! Writer of an index of lanes. Reads each lane once, with one lane per core at a time.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::{END, MARKS, MarkedLanes, NextMark, ReadMarks};
use crate::cores;
use crate::error::{Error, Result};
use crate::temporary::{Readers, Temporary, sync_folder};

/// Lane with the marks that have been read.
struct Lane {
    reader: Option<Box<dyn ReadMarks>>,
    marks: Vec<String>,
    elements: u64,
    /// Offset, length and hash of each block of the lane.
    blocks: Vec<[u64; 3]>,
}

impl Lane {
    /// Reads until the lane has the marks of a full block, or to its end.
    fn read(&mut self, every: u64) -> Result<()> {
        while let Some(reader) = self.reader.as_mut().filter(|_| (self.marks.len() as u64) < MARKS) {
            match reader.next_mark()? {
                NextMark::At(text) if text.contains('\n') => {
                    return Err(Error::state("a mark of a lane has more than one line"));
                }
                NextMark::At(text) => {
                    self.marks.push(text);
                    self.elements += every;
                }
                NextMark::End(elements) => (self.elements, self.reader) = (elements, None),
            }
        }
        Ok(())
    }
}

/// Writes the index of `lanes` to `path`, and passes the number of indexed elements to `progress`.
///
/// The file appears once it is complete. A block of marks per lane is held in memory. The order of blocks in the file therefore does
/// not depend on the speed of the readers.
///
/// # Errors
/// Errors of reading lanes, and of writing the file.
pub(in crate::keys) fn write(path: &Path, lanes: &dyn MarkedLanes, progress: &mut dyn FnMut(u64)) -> Result<()> {
    let head = lanes.head();
    let io = |e: io::Error| Error::io(e, path);
    let (file, temporary) = Temporary::create(path, Readers::AsUsual).map_err(io)?;
    let mut file = BufWriter::new(file);
    let (line, seed) = head.encode();
    file.write_all(&line).map_err(io)?;
    let mut end = line.len() as u64;
    let open = |lane| Ok(Lane { reader: Some(lanes.open(lane)?), marks: Vec::new(), elements: 0, blocks: Vec::new() });
    let mut all = (0..head.lanes).map(open).collect::<Result<Vec<Lane>>>()?;
    while all.iter().any(|lane| lane.reader.is_some()) {
        cores::try_map(&mut all, |lane| lane.read(head.every))?;
        for lane in all.iter_mut().filter(|lane| !lane.marks.is_empty()) {
            let text = std::mem::take(&mut lane.marks).join("\n");
            file.write_all(text.as_bytes()).map_err(io)?;
            lane.blocks.push([end, text.len() as u64, xxh3_64_with_seed(text.as_bytes(), seed)]);
            end += text.len() as u64;
        }
        progress(all.iter().map(|lane| lane.elements).sum());
    }
    let counts = all.iter().map(|lane| lane.elements);
    let blocks = all.iter().flat_map(|lane| &lane.blocks).flatten().copied();
    let mut directory: Vec<u8> = counts.chain(blocks).chain([end]).flat_map(u64::to_le_bytes).collect();
    let hash = xxh3_64_with_seed(&directory, seed);
    directory.extend(hash.to_le_bytes());
    directory.extend(END);
    let written = (|| {
        file.write_all(&directory)?;
        file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        temporary.publish(path)?;
        sync_folder(path)
    })();
    written.map_err(io)
}
