//! Recording of keys during a pass that evaluates everything.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use super::find::{KeySource, Keyed, Keys};
use super::folder::{self, KeyFolder, TOGETHER};
use super::{BLOCK, Key, KeyBlock, KeyHead, KeyWriter, slots_of};
use crate::cores;
use crate::error::{Error, Result};
use crate::sync::Locked;
use crate::units::grouped;

/// Memory limit per source for the keys of incomplete blocks: about thirty million records with an element each.
const MOST_HELD: usize = 512 << 20;

/// Recorder of keys for sources without a key file. Passes report keys record by record, in any order.
///
/// Blocks are written in their order; blocks that complete out of order wait in memory. A complete file gets its final name. Before that
/// it is a part file, and the next pass or `gristmill index --keys` resumes after its last block.
pub struct KeyRecorder {
    folder: KeyFolder,
    recordings: Mutex<Vec<Arc<Recording>>>,
    /// Reason why keys would not help.
    useless: OnceLock<String>,
}

impl KeyRecorder {
    pub(super) fn new(folder: KeyFolder) -> Self {
        Self { folder, recordings: Mutex::default(), useless: OnceLock::new() }
    }

    /// Stops recording, because keys would not help.
    pub(crate) fn refuse(&self, why: &str) {
        self.recordings.locked().clear();
        self.useless.get_or_init(|| why.to_owned());
    }

    /// Evaluates the records that a finished pass did not reach, if the pass reached at least half of them.
    /// Runs on all cores or on this thread.
    pub(crate) fn complete(&self, on_all_cores: bool) {
        let recordings = self.recordings.locked().clone();
        recordings.iter().for_each(|recording| recording.complete(on_all_cores));
    }

    /// Returns a remark for each source about the progress of its recording.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let useless = self.useless.get().map(|why| format!("keys are not recorded, as they would not help: {why}"));
        let recordings = self.recordings.locked();
        // Some stages do not map elements to records, so their recordings never begin.
        let are_all_begun = recordings.iter().all(|recording| recording.has_begun());
        let is_any_begun = recordings.iter().any(|recording| recording.has_begun());
        let begun = recordings.iter().filter(|_| is_any_begun);
        useless.into_iter().chain(begun.map(|recording| recording.remark(are_all_begun))).collect()
    }
}

impl KeySource for KeyRecorder {
    fn find(&self, keyed: &Arc<dyn Keyed>) -> Result<Option<Arc<dyn Keys>>> {
        if let Some(keys) = self.folder.find(keyed)? {
            return Ok(Some(keys));
        }
        let mut recordings = self.recordings.locked();
        // Several borders may read one source, and a mix may read one source several times.
        let known = recordings.iter().find(|known| known.is_of(&**keyed)).cloned();
        let recording = if let Some(known) = known {
            known
        } else {
            let is_free = |path: &PathBuf| !path.exists() && recordings.iter().all(|known| known.path != *path);
            let [first, own] = self.folder.files(&**keyed);
            let path = if is_free(&first) { first } else { own };
            let recording = Arc::new(Recording::new(path, self.folder.head(&**keyed), keyed));
            recordings.push(recording.clone());
            recording
        };
        Ok(Some(recording))
    }
}

debug_as!(KeyRecorder, |self, f| write!(f, "KeyRecorder({})", self.folder.path().display()));

/// Recording of the keys of a source.
struct Recording {
    keyed: Arc<dyn Keyed>,
    path: PathBuf,
    head: KeyHead,
    state: Mutex<State>,
}

struct State {
    file: File,
    /// Incomplete or waiting blocks after the written blocks, by number.
    open: BTreeMap<u64, OpenBlock>,
    /// Bytes held by the open blocks; recording stops above `most_held`.
    held: usize,
    most_held: usize,
}

/// State of the key file.
enum File {
    /// No key has been reported.
    NotBegun,
    Writing(Box<KeyWriter>),
    Whole,
    /// Writing has stopped, for the given reason. The part file remains, and a later pass can resume it.
    GivenUp(String),
}

impl Recording {
    fn new(path: PathBuf, head: KeyHead, keyed: &Arc<dyn Keyed>) -> Self {
        let state = Mutex::new(State::new(File::NotBegun));
        Self { keyed: keyed.clone(), path, head, state }
    }

    fn is_of(&self, keyed: &dyn Keyed) -> bool {
        (self.keyed.lines(), self.keyed.names()) == (keyed.lines(), keyed.names())
    }

    fn complete(&self, on_all_cores: bool) {
        if !self.state.locked().is_mostly_seen(self.keyed.records()) {
            return;
        }
        let mut before = Vec::new();
        loop {
            let missing = self.state.locked().missing_of_next_block(self.keyed.records());
            if missing.is_empty() || missing == before {
                return;
            }
            for (run, made) in missing.iter().zip(self.make(&missing, on_all_cores)) {
                match made {
                    Ok(keys) => {
                        run.clone().zip(keys.iter()).for_each(|(record, (key, lens))| self.note(record, key, lens))
                    }
                    Err(error) => self.state.locked().give_up(&error),
                }
            }
            before = missing;
        }
    }

    /// Computes the keys of runs of records.
    fn make(&self, runs: &[Range<u64>], on_all_cores: bool) -> Vec<Result<KeyBlock>> {
        let make = |run: &Range<u64>| folder::make(&*self.keyed, run.clone());
        if on_all_cores { cores::map(runs, make) } else { runs.iter().map(make).collect() }
    }

    fn has_begun(&self) -> bool {
        !matches!(self.state.locked().file, File::NotBegun)
    }

    /// Describes the progress. With `are_all_begun`, the keys of the whole pipeline are being recorded.
    fn remark(&self, are_all_begun: bool) -> String {
        let source = self.keyed.lines().first().map_or("", String::as_str);
        match &self.state.locked().file {
            File::NotBegun => {
                let lines = self.keyed.lines().join(" → ");
                format!("keys of {lines}: none are written yet; `gristmill index --keys` makes them")
            }
            File::Whole if are_all_begun => format!("keys of {source} are recorded: the next start plans with them"),
            File::Whole => format!("keys of {source} are recorded"),
            File::GivenUp(why) => format!("keys of {source} are not recorded: {why}"),
            File::Writing(writer) => {
                let (written, all) = (grouped(writer.next_slot()), grouped(self.keyed.records()));
                let rest = "the next pass or `gristmill index --keys` continues";
                format!("keys of {source}: the keys of the first {written} of {all} records are written; {rest}")
            }
        }
    }
}

impl Keys for Recording {
    fn key(&self, record: u64, _: &mut Vec<u32>) -> Result<Key> {
        Err(Error::state(format!("record {record} has no key yet")))
    }

    fn note(&self, record: u64, key: Key, lens: &[u32]) {
        let mut state = self.state.locked();
        // A pass does not fail if its keys cannot be written.
        if let Err(error) = state.note(record, key, lens, (&*self.keyed, &self.path, &self.head)) {
            state.give_up(&error);
        }
    }
}

impl State {
    fn new(file: File) -> Self {
        Self { file, open: BTreeMap::new(), held: 0, most_held: MOST_HELD }
    }

    fn note(
        &mut self,
        record: u64,
        key: Key,
        lens: &[u32],
        (keyed, path, head): (&dyn Keyed, &Path, &KeyHead),
    ) -> Result<()> {
        if matches!(self.file, File::NotBegun) {
            path.parent().map_or(Ok(()), |folder| std::fs::create_dir_all(folder).map_err(|e| Error::io(e, folder)))?;
            self.file = File::Writing(Box::new(KeyWriter::resume(path, head.clone())?));
            // The part file may lack nothing but its index.
            self.write_whole_blocks()?;
        }
        let (records, columns) = (keyed.records(), keyed.names().len());
        let is_new = matches!(&self.file, File::Writing(writer) if (writer.next_slot()..records).contains(&record));
        if !is_new {
            return Ok(());
        }
        let number = record / BLOCK as u64;
        let block = self.open.entry(number).or_insert_with(|| OpenBlock::new(slots_of(number, records), columns));
        let before = if block.is_new() { 0 } else { block.bytes() };
        block.put((record % BLOCK as u64) as usize, key, lens);
        self.held += block.bytes() - before;
        if self.held > self.most_held {
            let mib = self.most_held >> 20;
            let text = format!(
                "records are not read in file order, and {mib} MiB of keys wait for their blocks to be complete"
            );
            return Err(Error::config(text).help("`gristmill index --keys` makes them"));
        }
        self.write_whole_blocks()
    }

    #[cold]
    fn give_up(&mut self, error: &Error) {
        tracing::warn!("keys are no longer recorded: {error}");
        *self = Self::new(File::GivenUp(error.to_string()));
    }

    /// Returns true if at least half of the records have keys and the file is not complete.
    fn is_mostly_seen(&self, records: u64) -> bool {
        let File::Writing(writer) = &self.file else { return false };
        let open: usize = self.open.values().map(|block| block.keys.len() - block.missing).sum();
        (writer.next_slot() + open as u64).saturating_mul(2) >= records
    }

    /// Returns the runs of records without keys in the next block; empty if the file is not being written.
    fn missing_of_next_block(&self, records: u64) -> Vec<Range<u64>> {
        let File::Writing(writer) = &self.file else { return Vec::new() };
        let first = writer.next_slot();
        let block = self.open.get(&(first / BLOCK as u64));
        let is_missing = |record: &u64| block.is_none_or(|block| block.is_missing((record - first) as usize));
        let mut runs: Vec<Range<u64>> = Vec::new();
        for record in (first..first + slots_of(first / BLOCK as u64, records) as u64).filter(is_missing) {
            match runs.last_mut() {
                Some(run) if run.end == record && run.end - run.start < TOGETHER => run.end += 1,
                _ => runs.push(record..record + 1),
            }
        }
        runs
    }

    /// Writes the next blocks that are complete, and finishes the file after the last block.
    fn write_whole_blocks(&mut self) -> Result<()> {
        while let File::Writing(writer) = &mut self.file {
            if writer.slots_wanted() == 0 {
                return match std::mem::replace(&mut self.file, File::Whole) {
                    File::Writing(writer) => writer.finish(),
                    _ => Ok(()),
                };
            }
            let number = writer.next_slot() / BLOCK as u64;
            let Some(block) = self.open.get(&number).filter(|block| block.missing == 0) else { return Ok(()) };
            writer.push_block(&block.close()?)?;
            self.held -= block.bytes();
            self.open.remove(&number);
        }
        Ok(())
    }
}

/// Block that has only some of its keys.
struct OpenBlock {
    columns: usize,
    /// Key of each slot, and the offset of its lengths in `lens`.
    keys: Vec<Option<(Key, u32)>>,
    /// Lengths in the order of arrival.
    lens: Vec<u32>,
    missing: usize,
}

impl OpenBlock {
    fn new(slots: usize, columns: usize) -> Self {
        Self { columns, keys: vec![None; slots], lens: Vec::new(), missing: slots }
    }

    fn is_new(&self) -> bool {
        self.missing == self.keys.len()
    }

    fn is_missing(&self, slot: usize) -> bool {
        matches!(self.keys.get(slot), Some(None))
    }

    /// Returns the memory used, in bytes.
    fn bytes(&self) -> usize {
        self.keys.len() * size_of::<Option<(Key, u32)>>() + self.lens.capacity() * size_of::<u32>()
    }

    /// Stores a key if its slot is empty. Repeated keys, from another epoch or after a restore, are ignored.
    fn put(&mut self, slot: usize, key: Key, lens: &[u32]) {
        let start = u32::try_from(self.lens.len()).ok();
        if let (Some(empty @ None), Some(start)) = (self.keys.get_mut(slot), start) {
            *empty = Some((key, start));
            self.lens.extend_from_slice(lens);
            self.missing -= 1;
        }
    }

    /// Converts to a [`KeyBlock`]. All slots must have keys.
    fn close(&self) -> Result<KeyBlock> {
        let mut block = KeyBlock::new(self.columns);
        for (key, start) in self.keys.iter().flatten() {
            match *key {
                Key::Bad => block.push_bad(),
                Key::Elements(elements) => {
                    let start = *start as usize;
                    let lens = self.lens.get(start..start + elements as usize * self.columns);
                    block.push(elements, lens.unwrap_or_default())?;
                }
            }
        }
        Ok(block)
    }
}

#[cfg(test)]
mod tests {
    use super::super::KeyFile;
    use super::*;

    /// Source with the given number of records, each with one element. The list serves as both lines and names.
    struct Numbers(u64, Vec<String>);

    impl Keyed for Numbers {
        fn lines(&self) -> &[String] {
            &self.1
        }
        fn records(&self) -> u64 {
            self.0
        }
        fn names(&self) -> &[String] {
            &self.1
        }
        fn is_native(&self) -> bool {
            true
        }
        fn make(&self, records: Range<u64>, take: &mut dyn FnMut(Key, &[u32])) -> Result<()> {
            records.for_each(|record| take(Key::Elements(1), &[record as u32]));
            Ok(())
        }
    }

    fn recording(folder: &KeyFolder, records: u64) -> Recording {
        let keyed: Arc<dyn Keyed> = Arc::new(Numbers(records, vec!["t".to_owned()]));
        Recording::new(folder.files(&*keyed)[0].clone(), folder.head(&*keyed), &keyed)
    }

    #[test]
    fn no_more_is_held_than_may_be() {
        let (dir, len) = (tempfile::tempdir().unwrap(), 6 * BLOCK as u64);
        let folder = KeyFolder::new(dir.path());
        let backwards = |blocks: usize| {
            let recording = recording(&folder, len);
            recording.state.locked().most_held = blocks << 20;
            (0..len).rev().for_each(|record| recording.note(record, Key::Elements(1), &[record as u32]));
            recording.remark(true)
        };
        assert_eq!(
            backwards(2),
            "keys of t are not recorded: records are not read in file order, and 2 MiB of keys wait for their blocks to be complete"
        );
        assert!(backwards(7).ends_with("are recorded: the next start plans with them"));
    }

    #[test]
    fn missing_records_are_made_if_half_of_all_was_seen() {
        for (seen, is_whole) in [(149, false), (150, true)] {
            let dir = tempfile::tempdir().unwrap();
            let recording = recording(&KeyFolder::new(dir.path()), 300);
            (0..seen).for_each(|record| recording.note(record, Key::Elements(1), &[record as u32]));
            recording.complete(false);
            assert_eq!(recording.path.exists(), is_whole, "{seen} of 300");
        }
    }

    #[test]
    fn a_file_under_the_name_of_other_keys_is_refused_by_who_records() {
        let dir = tempfile::tempdir().unwrap();
        let folder = KeyFolder::new(dir.path());
        let keyed = |name: &str| -> Arc<dyn Keyed> { Arc::new(Numbers(300, vec![name.to_owned()])) };
        let (ours, theirs) = (keyed("t"), keyed("u"));
        folder.record(&*theirs, |_| ()).unwrap();
        std::fs::rename(&folder.files(&*theirs)[0], &folder.files(&*ours)[0]).unwrap();
        let error = folder.recorded().find(&ours).err().unwrap();
        assert_eq!(error.kind(), crate::ErrorKind::State, "{error}");
    }

    #[test]
    fn forged_keys_are_found_when_their_file_is_opened() {
        let dir = tempfile::tempdir().unwrap();
        let keyed: Arc<dyn Keyed> = Arc::new(Numbers(3000, vec!["t".to_owned()]));
        let folder = || KeyFolder::new(dir.path());
        let write = |count: u32| {
            let mut block = KeyBlock::new(1);
            (0..3000).for_each(|record| block.push(count, &vec![record; count as usize]).unwrap());
            let mut writer = KeyWriter::resume(&folder().files(&*keyed)[0], folder().head(&*keyed)).unwrap();
            while writer.slots_wanted() > 0 {
                let (first, most) = (writer.next_slot() as usize, writer.slots_wanted());
                let mut some = KeyBlock::new(1);
                block.iter().skip(first).take(most).for_each(|(key, lens)| some.push_of(key, lens).unwrap());
                writer.push_block(&some).unwrap();
            }
            writer.finish().unwrap();
        };
        write(1);
        assert!(folder().find(&keyed).unwrap().is_some());
        for (count, told) in [(0, "is one element now, but is dropped in the file"), (9, "is 9 elements in the file")] {
            std::fs::remove_file(&folder().files(&*keyed)[0]).unwrap();
            write(count);
            let error = folder().find(&keyed).err().unwrap();
            assert!(
                error.message().starts_with("the keys are stale: record ") && error.message().ends_with(told),
                "{error}"
            );
        }
    }

    #[test]
    fn a_part_file_that_lacks_its_end_alone_gets_it() {
        let (dir, len) = (tempfile::tempdir().unwrap(), 300);
        let folder = KeyFolder::new(dir.path());
        let first = recording(&folder, len);
        let (path, mut block) = (first.path.clone(), KeyBlock::new(1));
        (0..300).for_each(|record| block.push(1, &[record]).unwrap());
        KeyWriter::resume(&path, folder.head(&*first.keyed)).unwrap().push_block(&block).unwrap();
        assert!(!path.exists());
        first.note(7, Key::Elements(1), &[7]);
        assert_eq!(KeyFile::open(&path).unwrap().elements(), 300);
    }
}
