//! A file that is being written, and that nobody sees until it is whole.

use std::io::{self, Write};

use super::local::LocalOutput;
#[cfg(feature = "store")]
use super::upload::Upload;
use crate::error::Result;

/// A new file of a [`Folder`](super::Folder): what is written appears under its name at [`finish`](Self::finish), all at once.
/// Dropped before, it leaves nothing behind.
///
/// On a disk it is a temporary file beside its place (`.NAME.RANDOM.tmp`), synced and renamed. In a store it is one `PUT`, or,
/// above 8 MiB, a multipart upload that is completed at the end: up to four parts are sent while others are written.
/// A process that is killed leaves the temporary file, or the parts, which stores remove by a rule for unfinished uploads.
#[derive(Debug)]
pub struct Output(Kind);

#[derive(Debug)]
enum Kind {
    Local(LocalOutput),
    #[cfg(feature = "store")]
    Remote(Upload),
}

impl Output {
    pub(super) fn local(output: LocalOutput) -> Self {
        Self(Kind::Local(output))
    }

    #[cfg(feature = "store")]
    pub(super) fn remote(upload: Upload) -> Self {
        Self(Kind::Remote(upload))
    }

    /// Publishes what was written, and returns its size in bytes. A file of that name is replaced.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if it cannot be written; then there is nothing new under the name.
    pub fn finish(self) -> Result<u64> {
        match self.0 {
            Kind::Local(output) => output.finish(),
            #[cfg(feature = "store")]
            Kind::Remote(upload) => upload.finish(),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Kind::Local(output) => output.write(bytes),
            #[cfg(feature = "store")]
            Kind::Remote(upload) => upload.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Kind::Local(output) => output.flush(),
            #[cfg(feature = "store")]
            Kind::Remote(upload) => upload.flush(),
        }
    }
}
