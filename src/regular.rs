//! Regular files. Opening a pipe blocks until its other end is open, and reading a device such as `/dev/zero` never ends.

use std::fs::{self, File};
use std::path::Path;

use crate::error::{Error, Result};

const PIPED: &str =
    "write it to a file; streams of text, such as JSON Lines, can also be read from standard input, `-`";

/// Opens a regular file.
///
/// # Errors
/// [`ErrorKind::Io`](crate::ErrorKind::Io) if it cannot be opened, [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if it is not a regular
/// file.
pub(crate) fn open(path: &Path) -> Result<File> {
    // Checked before the open, which blocks on a pipe without a writer.
    let metadata = fs::metadata(path).map_err(|e| Error::io(e, path))?;
    if !metadata.is_file() {
        let what = if metadata.is_dir() { "a directory" } else { "a pipe or device" };
        let error = Error::unsupported(format!("is {what}, a regular file is needed")).path(path);
        return Err(if metadata.is_dir() { error } else { error.help(PIPED) });
    }
    File::open(path).map_err(|e| Error::io(e, path))
}

/// Reads a text file of at most 256 MiB.
///
/// # Errors
/// As [`open`]; [`ErrorKind::Data`](crate::ErrorKind::Data) if it is larger than 256 MiB, [`ErrorKind::Io`](crate::ErrorKind::Io) if it is not UTF-8.
pub(crate) fn read_text(path: &Path) -> Result<String> {
    use std::io::Read;

    const MOST: u64 = 256 << 20;
    let mut text = String::new();
    open(path)?.take(MOST + 1).read_to_string(&mut text).map_err(|e| Error::io(e, path))?;
    if text.len() as u64 > MOST {
        return Err(
            Error::data(format!("is larger than {}, the limit for such a file", crate::units::Bytes(MOST))).path(path)
        );
    }
    Ok(text)
}

#[cfg(all(test, unix, feature = "cli"))]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn nobody_waits_for_a_pipe_or_reads_a_device_without_end() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        let status = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(status.success());
        for path in [pipe.as_path(), Path::new("/dev/zero"), dir.path()] {
            assert_eq!(read_text(path).unwrap_err().kind(), ErrorKind::Unsupported, "{}", path.display());
        }
        let file = dir.path().join("file");
        fs::write(&file, "text").unwrap();
        assert_eq!(read_text(&file).unwrap(), "text");
        fs::write(&file, [0xff]).unwrap();
        assert_eq!(read_text(&file).unwrap_err().kind(), ErrorKind::Io);
    }
}
