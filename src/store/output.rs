//! Files that become visible when they are complete.

use std::io::{self, Write};

use super::local::LocalOutput;
use super::remote::Upload;
use crate::error::Result;

/// New file of a [`Folder`](super::Folder), published under its name by [`finish`](Self::finish). Dropping an
/// unfinished file discards its contents.
///
/// On disk, the file has a temporary name in its folder (`.NAME.RANDOM.tmp`) until it is synced and renamed. In a
/// store, a file below 8 MiB is a single `PUT`. A larger file is a multipart upload, completed at the end. Up to four
/// parts are sent while others are written.
///
/// A killed process leaves the temporary file or the parts. Stores remove such parts by a rule for unfinished uploads.
#[derive(Debug)]
pub struct Output(Kind);

#[derive(Debug)]
enum Kind {
    Local(LocalOutput),
    Remote(Upload),
}

impl Output {
    pub(super) fn local(output: LocalOutput) -> Self {
        Self(Kind::Local(output))
    }

    pub(super) fn remote(upload: Upload) -> Self {
        Self(Kind::Remote(upload))
    }

    /// Publishes the file and returns its size in bytes. Replaces an existing file of this name.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if the file cannot be written. Nothing new then appears under the name.
    pub fn finish(self) -> Result<u64> {
        match self.0 {
            Kind::Local(output) => output.finish(),
            Kind::Remote(upload) => upload.finish(),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Kind::Local(output) => output.write(bytes),
            Kind::Remote(upload) => upload.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Kind::Local(output) => output.flush(),
            Kind::Remote(upload) => upload.flush(),
        }
    }
}
