//! Writer of recordings.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::frames::{Frame, Frames, frame};
use super::{FORMAT, Head, Line};
use crate::cx::Update;
use crate::error::{Error, Result};
use crate::regular;
use crate::report::Report;

/// An open recording.
#[derive(Debug)]
pub(crate) struct RecordWriter {
    file: File,
    path: PathBuf,
}

impl RecordWriter {
    /// Begins a recording. Renames an existing recording to `NAME.1.ENDING`, which replaces an older `NAME.1.ENDING`.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if the file cannot be written. [`ErrorKind::Config`](crate::ErrorKind::Config) if the
    /// existing file is not a recording.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        if path.try_exists().map_err(|e| Error::io(e, path))? {
            keep(path, regular::open(path)?)?;
        }
        let file = File::create(path).map_err(|e| Error::io(e, path))?;
        let mut writer = Self { file, path: path.to_owned() };
        let began = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
        let version = env!("CARGO_PKG_VERSION").to_owned();
        writer.line(&Head { gristmill_record: FORMAT, version, pid: std::process::id(), began })?;
        Ok(writer)
    }

    /// Adds the records since the last look, and the present report. `end` marks the last look.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if the file cannot be written: the disk may be full.
    pub(crate) fn add(&mut self, update: &Update, report: &Report, end: bool) -> Result<()> {
        self.line(&Line { update, report, picture: &report.picture, end })
    }

    fn line(&mut self, line: &impl serde::Serialize) -> Result<()> {
        // Each write is a whole frame; a process killed during a write leaves a cut frame.
        let text = serde_json::to_string(line).map_err(io::Error::from);
        let written = text.and_then(|text| frame(&text)).and_then(|frame| self.file.write_all(&frame));
        written.map_err(|e| Error::io(e, &self.path))
    }
}

/// Renames an existing recording.
fn keep(path: &Path, file: File) -> Result<()> {
    let is_device = file.metadata().is_ok_and(|metadata| !metadata.is_file());
    let mut some = file.take(1 << 20);
    if is_device || is_recording(&mut some) == Some(false) {
        let text = format!("{} exists and is not a recording of a run, so it is not overwritten", path.display());
        return Err(Error::config(text).help("give the recording another name"));
    }
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let ending = path.extension().map_or_else(String::new, |ending| format!(".{}", ending.to_string_lossy()));
    std::fs::rename(path, path.with_file_name(format!("{name}.1{ending}"))).map_err(|e| Error::io(e, path))
}

/// Returns whether these bytes begin a recording; `None` if there are no bytes.
fn is_recording(from: &mut impl Read) -> Option<bool> {
    match Frames::new(from).next() {
        Ok(Frame::End) => None,
        Ok(Frame::Line(line)) => Some(serde_json::from_str::<Head>(&line).is_ok()),
        Ok(Frame::Cut) | Err(_) => Some(false),
    }
}
