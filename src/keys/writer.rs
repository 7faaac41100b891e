//! Writer of key files.

use std::fs::{File, TryLockError};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::block::KeyBlock;
use super::encoded::{BlockHead, encode, hash_of};
use super::head::KeyHead;
use super::index::Index;
use super::{BLOCK, Sums, slots_of};
use crate::error::{Error, Result};
use crate::temporary::{is_link, open_part, sync_folder};

/// Number of bytes that are searched for the head of other keys.
const LONGEST_HEAD: u64 = 64 << 20;

/// Writer of a key file. Takes keys block by block and evaluates nothing.
///
/// Blocks are written to a part file beside the target, `NAME.part`, which is renamed once it is complete. An interruption leaves the
/// part file, and [`resume`](Self::resume) continues after its last complete block.
///
/// ```
/// use gristmill::keys::{BLOCK, Key, KeyBlock, KeyFile, KeyHead, KeyWriter};
/// # let dir = std::env::temp_dir().join(format!("gristmill-doc-keys-{}", std::process::id()));
/// # std::fs::create_dir_all(&dir).unwrap();
/// # let path = dir.join("pipeline.gmk");
/// let head = KeyHead::new("6c3bd1b5f6a0a5f8", 100_000).columns(["tokens"]);
/// let length = |slot: u64| 1 + slot as u32 % 1000;
///
/// let mut writer = KeyWriter::resume(&path, head)?;
/// while writer.slots_wanted() > 0 {
///     let mut block = KeyBlock::new(1);
///     for slot in writer.next_slot()..writer.next_slot() + writer.slots_wanted() as u64 {
///         block.push(1, &[length(slot)])?;
///     }
///     writer.push_block(&block)?;
/// }
/// writer.finish()?;
///
/// let keys = KeyFile::open(&path)?;
/// assert_eq!((keys.blocks(), keys.block(1)?.len()), (2, 100_000 - BLOCK));
/// let mut lens = Vec::new();
/// assert_eq!((keys.key(77_777, &mut lens)?, lens[0]), (Key::Elements(1), length(77_777)));
/// # std::fs::remove_dir_all(&dir).unwrap();
/// # Ok::<(), gristmill::Error>(())
/// ```
pub struct KeyWriter {
    path: PathBuf,
    part: PathBuf,
    file: File,
    head: KeyHead,
    /// Hash of the head, the seed of all other hashes.
    seed: u64,
    index: Index,
    encoded: Vec<u8>,
}

impl KeyWriter {
    /// Creates a key file, and discards an existing part file.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if the file cannot be written; [`ErrorKind::Config`](crate::ErrorKind::Config) if another
    /// process is writing it, or if the head is invalid.
    pub fn create(path: impl AsRef<Path>, head: KeyHead) -> Result<Self> {
        Self::open(path.as_ref(), head)?.begin()
    }

    /// Resumes an existing part file after its last complete block, or creates a part file.
    ///
    /// # Errors
    /// As [`create`](Self::create); [`ErrorKind::State`](crate::ErrorKind::State) if the part file has another prefix or other sources.
    pub fn resume(path: impl AsRef<Path>, head: KeyHead) -> Result<Self> {
        let writer = Self::open(path.as_ref(), head)?;
        let (line, _) = writer.head.encode();
        let mut file = BufReader::with_capacity(1 << 20, &writer.file);
        let io = |e| Error::io(e, &writer.part);
        let mut begun = Vec::new();
        file.by_ref().take(line.len() as u64).read_to_end(&mut begun).map_err(io)?;
        if begun == line {
            let index = whole_blocks(&mut file, &writer.head, writer.seed, line.len()).map_err(io)?;
            writer.file.set_len(index.end).map_err(io)?;
            return Ok(Self { index, ..writer });
        }
        // A part file without a valid head is the remainder of a crash.
        file.take(LONGEST_HEAD).read_to_end(&mut begun).map_err(io)?;
        if let Ok((other, ..)) = KeyHead::decode(&begun, Sums::Checked) {
            let differs = other.check(&writer.head).err().map_or_else(String::new, |e| format!(": {}", e.message()));
            return Err(Error::state(format!("the part file belongs to other keys{differs}"))
                .path(&writer.part)
                .help("remove it, or name another key file"));
        }
        writer.begin()
    }

    fn open(path: &Path, head: KeyHead) -> Result<Self> {
        head.check_writable().map_err(|e| e.path(path))?;
        let mut part = path.as_os_str().to_owned();
        part.push(".part");
        let part = PathBuf::from(part);
        let (line, seed) = head.encode();
        let file = own(&part)?;
        let index = Index::empty(line.len());
        Ok(Self { path: path.to_owned(), part, file, head, seed, index, encoded: Vec::new() })
    }

    fn begin(mut self) -> Result<Self> {
        let (line, _) = self.head.encode();
        let begun = (|| {
            self.file.set_len(0)?;
            self.file.rewind()?;
            self.file.write_all(&line)
        })();
        begun.map_err(|e| Error::io(e, &self.part))?;
        Ok(self)
    }

    /// Returns the first slot of the next block. The keys of earlier slots have been written.
    pub fn next_slot(&self) -> u64 {
        (self.index.blocks.len() as u64 * BLOCK as u64).min(self.head.len)
    }

    /// Returns the number of slots of the next block: [`BLOCK`](super::BLOCK), fewer in the last block, and 0 after the last block.
    pub fn slots_wanted(&self) -> usize {
        slots_of(self.index.blocks.len() as u64, self.head.len)
    }

    /// Returns the number of elements written so far.
    pub fn elements(&self) -> u64 {
        self.index.elements
    }

    /// Returns the head of the file.
    pub fn head(&self) -> &KeyHead {
        &self.head
    }

    /// Writes the keys of the next [`slots_wanted`](Self::slots_wanted) slots.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if the block cannot be written; the call may be retried.
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if the block has the wrong number of slots or columns, or too many lengths.
    pub fn push_block(&mut self, block: &KeyBlock) -> Result<()> {
        let (slots, columns) = (self.slots_wanted(), self.head.columns.len());
        if (block.len(), block.columns()) != (slots, columns) || slots == 0 {
            let text = format!("a block of {} keys and {} columns", block.len(), block.columns());
            return Err(self.refused(format!("{text}, and the next one has {slots} keys and {columns} columns")));
        }
        let (number, before) = (self.index.blocks.len() as u64, self.index.elements);
        let head = encode(block, number, before, self.seed, &mut self.encoded);
        let head = head.map_err(|e| e.path(&self.path).index(self.next_slot()))?;
        self.write().map_err(|e| Error::io(e, &self.part))?;
        self.index.push(head);
        Ok(())
    }

    /// Writes the encoded bytes after the last block, over the remainder of a failed attempt.
    fn write(&mut self) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(self.index.end))?;
        self.file.write_all(&self.encoded)
    }

    #[cold]
    fn refused(&self, text: String) -> Error {
        Error::config(text).path(&self.path)
    }

    /// Writes the index and renames the part file. After a crash, either the complete file or the part file exists.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if the file cannot be written; [`ErrorKind::Config`](crate::ErrorKind::Config) if blocks are missing.
    pub fn finish(mut self) -> Result<()> {
        if self.slots_wanted() > 0 {
            let text = format!("only {} of {} keys are written", self.next_slot(), self.head.len);
            return Err(self.refused(text));
        }
        self.encoded = self.index.encode(self.seed);
        let end = self.index.end + self.encoded.len() as u64;
        let finished = (|| {
            self.write()?;
            self.file.set_len(end)?;
            self.file.sync_all()?;
            std::fs::rename(&self.part, &self.path)?;
            sync_folder(&self.path)
        })();
        finished.map_err(|e| Error::io(e, &self.path))
    }
}

debug_as!(KeyWriter, |self, f| {
    write!(f, "KeyWriter({}: {} of {} slots)", self.path.display(), self.next_slot(), self.head.len)
});

/// Opens or creates a part file and locks it for this process. File systems without locks get no protection.
fn own(part: &Path) -> Result<File> {
    let other = || {
        Error::config("another process writes this key file").path(part).help("wait for it, or name another key file")
    };
    let file = open_part(part).map_err(|e| match is_link(part) {
        true => Error::config("it is a link, through which nothing is written").path(part).help("remove the link"),
        false => Error::io(e, part),
    })?;
    if let Err(TryLockError::WouldBlock) = file.try_lock() {
        return Err(other());
    }
    // The previous owner of the lock may have renamed the file.
    if is_at(&file, part).map_err(|e| Error::io(e, part))? { Ok(file) } else { Err(other()) }
}

#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let (ours, there) = (
        file.metadata()?,
        match std::fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            there => there?,
        },
    );
    Ok((ours.dev(), ours.ino()) == (there.dev(), there.ino()))
}

#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> io::Result<bool> {
    Ok(true)
}

/// Reads the blocks of a part file after its head, up to the first torn block.
fn whole_blocks(file: &mut impl Read, head: &KeyHead, seed: u64, head_end: usize) -> io::Result<Index> {
    let mut index = Index::empty(head_end);
    let mut bytes = Vec::new();
    loop {
        let number = index.blocks.len() as u64;
        bytes.clear();
        file.by_ref().take(BlockHead::BYTES as u64).read_to_end(&mut bytes)?;
        let Some(block) = bytes.first_chunk().map(BlockHead::from_bytes) else { return Ok(index) };
        let wanted = (number, index.elements, slots_of(number, head.len));
        if (block.number, block.before, block.slots as usize) != wanted || block.slots == 0 {
            return Ok(index);
        }
        // Limits the memory to the bytes in the file.
        file.by_ref().take(u64::from(block.bytes).saturating_sub(bytes.len() as u64)).read_to_end(&mut bytes)?;
        if bytes.len() != block.bytes as usize || hash_of(&bytes, seed) != block.hash {
            return Ok(index);
        }
        index.push(block);
    }
}
