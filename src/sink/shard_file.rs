//! A file of a shard during writing: compressed, counted and hashed.

use std::io::{self, Write};
use std::sync::Arc;

use rayon::ThreadPool;
use xxhash_rust::xxh3::Xxh3;

use super::compression::Compression;
use super::folder::Folder;
use super::manifest::FileEntry;
#[cfg(feature = "compress")]
use super::sections::Sections;
use crate::error::{Error, Result};
use crate::store::Output;

/// The file that the writers of formats write to.
pub(super) struct ShardFile {
    pub(super) name: String,
    content: Content,
}

enum Content {
    Plain(Counted),
    #[cfg(feature = "compress")]
    Packed(Sections<Counted>),
}

/// Output file with the count and the hash of its bytes.
struct Counted {
    out: Output,
    hash: Box<Xxh3>,
    bytes: u64,
}

impl ShardFile {
    /// Creates a file. A `compression` applies to the whole file, on the threads of the pool if there is a pool.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if the file cannot be written.
    pub(super) fn create(
        folder: &Folder,
        name: String,
        compression: Compression,
        pool: Option<&Arc<ThreadPool>>,
    ) -> Result<Self> {
        let file = Counted { out: folder.create(&name)?, hash: Box::new(Xxh3::new()), bytes: 0 };
        let content = Content::new(file, compression, pool).map_err(|e| Error::io(e, folder.file(&name)))?;
        Ok(Self { name, content })
    }

    /// Writes and publishes a file with the content `bytes`.
    pub(super) fn write_whole(folder: &Folder, name: &str, bytes: &[u8]) -> Result<FileEntry> {
        let mut file = Self::create(folder, name.to_owned(), Compression::None, None)?;
        file.write_all(bytes).map_err(|e| Error::io(e, folder.file(name)))?;
        file.finish()
    }

    /// Publishes the file.
    pub(super) fn finish(self) -> Result<FileEntry> {
        let Self { name, content } = self;
        let Counted { out, hash, bytes } = content.finish().map_err(|e| Error::io(e, &name))?;
        out.finish()?;
        Ok(FileEntry { name, bytes, xxh3: format!("{:032x}", hash.digest128()) })
    }
}

impl Content {
    #[cfg(feature = "compress")]
    fn new(file: Counted, compression: Compression, pool: Option<&Arc<ThreadPool>>) -> io::Result<Self> {
        match compression {
            Compression::None => Ok(Self::Plain(file)),
            other => Sections::new(file, other, pool.cloned()).map(Self::Packed),
        }
    }

    /// Ignores the compression, because options that compress whole files were refused earlier.
    #[cfg(not(feature = "compress"))]
    fn new(file: Counted, _: Compression, _: Option<&Arc<ThreadPool>>) -> io::Result<Self> {
        Ok(Self::Plain(file))
    }

    fn finish(self) -> io::Result<Counted> {
        match self {
            Self::Plain(file) => Ok(file),
            #[cfg(feature = "compress")]
            Self::Packed(file) => file.finish(),
        }
    }
}

impl Write for ShardFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.content {
            Content::Plain(file) => file.write(bytes),
            #[cfg(feature = "compress")]
            Content::Packed(file) => file.write(bytes),
        }
    }

    /// Does nothing, because a flush must not end a section early.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.hash.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

debug_as!(ShardFile, |self, f| f.debug_struct("ShardFile").field("name", &self.name).finish_non_exhaustive());
