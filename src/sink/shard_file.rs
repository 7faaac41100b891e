//! A file of a shard on its way to the disk: compressed, counted, hashed.

use std::io::{self, Write};

#[cfg(feature = "compress")]
use lz4_flex::frame::{BlockSize, FrameEncoder, FrameInfo};
use xxhash_rust::xxh3::Xxh3;

use super::compression::Compression;
use super::folder::Folder;
use super::manifest::FileEntry;
use crate::error::{Error, Result};
use crate::store::Output;

/// What writers of formats write to.
pub(super) struct ShardFile {
    name: String,
    codec: Codec,
}

enum Codec {
    Plain(Counted),
    #[cfg(feature = "compress")]
    Zstd(zstd::Encoder<'static, Counted>),
    #[cfg(feature = "compress")]
    Gzip(flate2::write::GzEncoder<Counted>),
    #[cfg(feature = "compress")]
    Lz4(Box<FrameEncoder<Counted>>),
}

/// What lies in the file.
struct Counted {
    out: Output,
    hash: Box<Xxh3>,
    bytes: u64,
}

impl ShardFile {
    /// Begins a file; all of it is compressed, if anything is.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if it cannot be written.
    pub(super) fn create(folder: &Folder, name: String, compression: Compression) -> Result<Self> {
        let file = Counted { out: folder.create(&name)?, hash: Box::new(Xxh3::new()), bytes: 0 };
        let codec = Codec::new(file, compression).map_err(|e| Error::io(e, folder.file(&name)))?;
        Ok(Self { name, codec })
    }

    /// Writes and publishes a file of these bytes.
    #[cfg_attr(
        not(any(feature = "arrow", feature = "mds")),
        expect(dead_code, reason = "formats with such files are off")
    )]
    pub(super) fn write_whole(folder: &Folder, name: &str, bytes: &[u8]) -> Result<FileEntry> {
        let mut file = Self::create(folder, name.to_owned(), Compression::None)?;
        file.write_all(bytes).map_err(|e| Error::io(e, folder.file(name)))?;
        file.finish()
    }

    /// What it will be called.
    #[cfg_attr(not(feature = "mds"), expect(dead_code, reason = "formats whose files know their names are off"))]
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Publishes it.
    pub(super) fn finish(self) -> Result<FileEntry> {
        let Self { name, codec } = self;
        let Counted { out, hash, bytes } = codec.finish().map_err(|e| Error::io(e, &name))?;
        out.finish()?;
        Ok(FileEntry { name, bytes, xxh3: format!("{:032x}", hash.digest128()) })
    }
}

impl Codec {
    fn new(file: Counted, compression: Compression) -> io::Result<Self> {
        match compression {
            Compression::None => Ok(Self::Plain(file)),
            #[cfg(feature = "compress")]
            Compression::Zstd(level) => {
                let mut encoder = zstd::Encoder::new(file, level)?;
                encoder.include_checksum(true)?;
                Ok(Self::Zstd(encoder))
            }
            #[cfg(feature = "compress")]
            Compression::Gzip(level) => {
                // Neither name nor time: the same content is the same file.
                Ok(Self::Gzip(flate2::GzBuilder::new().write(file, flate2::Compression::new(level))))
            }
            #[cfg(feature = "compress")]
            Compression::Lz4 => {
                // Blocks whose size no write decides.
                let frame = FrameInfo::new().block_size(BlockSize::Max1MB).content_checksum(true);
                Ok(Self::Lz4(Box::new(FrameEncoder::with_frame_info(frame, file))))
            }
            other => Err(io::Error::other(format!("whole files are not compressed by {other}"))),
        }
    }

    fn finish(self) -> io::Result<Counted> {
        match self {
            Self::Plain(file) => Ok(file),
            #[cfg(feature = "compress")]
            Self::Zstd(encoder) => encoder.finish(),
            #[cfg(feature = "compress")]
            Self::Gzip(encoder) => encoder.finish(),
            #[cfg(feature = "compress")]
            Self::Lz4(encoder) => encoder.finish().map_err(io::Error::from),
        }
    }
}

impl Write for ShardFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.codec {
            Codec::Plain(file) => file.write(bytes),
            #[cfg(feature = "compress")]
            Codec::Zstd(encoder) => encoder.write(bytes),
            #[cfg(feature = "compress")]
            Codec::Gzip(encoder) => encoder.write(bytes),
            #[cfg(feature = "compress")]
            Codec::Lz4(encoder) => encoder.write(bytes),
        }
    }

    /// What is compressed is not cut short for it.
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

impl std::fmt::Debug for ShardFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ShardFile").field("name", &self.name).finish_non_exhaustive()
    }
}
