//! Detection of file formats by content, and by name only if the content is ambiguous.

pub(super) mod plain;
#[cfg(test)]
pub(super) mod tests;

use std::path::Path;

use super::content::Content;
use super::formats::{Format, Probe};
use super::signs::no_text;
use crate::error::{Error, Result};
use crate::place::Location;

/// Detects the format of the file at `path`, or of the folder if it is a dataset.
///
/// The content decides: a magic number, a matching checksum (also inside compressed data that this build can read), or
/// text that parses. The name decides if the content is ambiguous, such as bare token ids, or empty. A name that
/// contradicts the content is an error.
///
/// # Errors
/// [`ErrorKind::Io`](crate::ErrorKind::Io) if the file cannot be read; [`ErrorKind::Data`](crate::ErrorKind::Data) if
/// name and content disagree; [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if neither identifies the
/// format.
pub fn detect(path: impl AsRef<Path>) -> Result<Format> {
    let file = Location::from(path.as_ref());
    let path = file.as_ref();
    if path.is_dir() {
        return detect_folder(path).ok_or_else(|| Error::unsupported("this folder is no data set").path(path));
    }
    let content = Content::open_stream(&file)?;
    let probe = Probe::new(&content, path).map_err(|e| e.path(path))?;
    recognise(&probe).map_err(|e| e.path(path))
}

/// Returns the format of a folder that is a dataset as a whole. Returns `None` for a folder of independent files.
pub(crate) fn detect_folder(path: &Path) -> Option<Format> {
    Format::by_folder(path)
}

/// Returns the format of the probed file.
fn recognise(probe: &Probe) -> Result<Format> {
    if let Some(format) = Format::by_sign(probe) {
        return Ok(format);
    }
    match promised(probe) {
        Some(format) if !format.is_built() => Err(format.lacking()),
        Some(format) if format.could_be(probe) => Ok(format),
        Some(format) => {
            Err(Error::data(format!("the name promises {format}, the content does not begin as such a file does"))
                .offset(0))
        }
        None => match no_text(probe.head()) {
            Some((what, help)) => Err(Error::unsupported(format!("is {what}")).help(help)),
            None => Format::by_guess(probe, probe.is_compressed()).ok_or_else(unknown),
        },
    }
}

/// Returns the format that the name promises. If a compressed file has an unknown ending, guesses a text format from
/// the content.
fn promised(probe: &Probe) -> Option<Format> {
    let is_packed = || [".gz", ".zst", ".lz4"].iter().any(|ending| probe.name.ends_with(ending));
    Format::by_name(&probe.name).or_else(|| is_packed().then(|| Format::by_guess(probe, true)).flatten())
}

fn unknown() -> Error {
    let endings: Vec<&str> = Format::ALL.iter().flat_map(|format| format.endings()).copied().collect();
    Error::unsupported("neither the first bytes nor the name say what this is")
        .help(format!("known endings are {}", endings.join(", ")))
}
