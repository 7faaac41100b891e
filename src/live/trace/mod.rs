//! The view that writes a pass as a trace, for Perfetto and Chrome.
//!
//! A trace is a list of events in JSON, written as they come. The list has no end if the process is killed, which trace
//! viewers accept.

mod events;

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use self::events::Events;
use super::{Live, View};
use crate::cx::Cursor;
use crate::error::{Error, Result};
use crate::report::Depth;

/// A trace that is extended while a pass runs.
#[derive(Debug)]
pub(crate) struct TraceView {
    file: Out,
    path: PathBuf,
    cursor: Cursor,
    events: Events,
}

impl TraceView {
    /// Creates a trace file, compressed if its name ends in `.gz`.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if the file cannot be written,
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if compression is not compiled in.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        let file = Out::create(path)?;
        let mut view = Self { file, path: path.to_owned(), cursor: Cursor::default(), events: Events::default() };
        view.write("[")?;
        Ok(view)
    }

    fn write(&mut self, text: &str) -> Result<()> {
        self.file.write(text).map_err(|e| Error::io(e, &self.path).help("nothing more of the run is traced"))
    }
}

impl View for TraceView {
    fn look(&mut self, live: &Live, end: bool) -> Result<()> {
        let depth = if end { Depth::Named } else { Depth::Figures };
        let Some(report) = live.report(depth) else { return Ok(()) };
        let update = live.updates(&mut self.cursor, end);
        self.events.add(update, &report.stages);
        if end {
            self.events.finish(&report);
        }
        let mut text = self.events.take();
        if end {
            // Closes the list.
            text += "\n]\n";
        }
        self.write(&text)?;
        if end { self.file.finish().map_err(|e| Error::io(e, &self.path)) } else { Ok(()) }
    }
}

/// Output file of a trace.
#[derive(Debug)]
enum Out {
    Plain(File),
    #[cfg(feature = "compress")]
    Gz(Box<flate2::write::GzEncoder<File>>),
}

impl Out {
    fn create(path: &Path) -> Result<Self> {
        let is_gz = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("gz"));
        #[cfg(not(feature = "compress"))]
        if is_gz {
            let text = format!("compressing {} needs the feature `compress`", path.display());
            return Err(Error::config(text).help("choose a name that does not end in .gz"));
        }
        let file = File::create(path).map_err(|e| Error::io(e, path))?;
        #[cfg(feature = "compress")]
        if is_gz {
            let encoder = flate2::write::GzEncoder::new(file, flate2::Compression::new(3));
            return Ok(Self::Gz(Box::new(encoder)));
        }
        Ok(Self::Plain(file))
    }

    /// Writes text and flushes the compressor.
    fn write(&mut self, text: &str) -> io::Result<()> {
        match self {
            Self::Plain(file) => file.write_all(text.as_bytes()),
            #[cfg(feature = "compress")]
            Self::Gz(file) => file.write_all(text.as_bytes()).and_then(|()| file.flush()),
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(_) => Ok(()),
            #[cfg(feature = "compress")]
            Self::Gz(file) => file.try_finish(),
        }
    }
}
