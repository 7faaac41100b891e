//! Reader of recordings.

use std::io::{self, Read};
use std::path::Path;

use super::frames::{Frame, Frames};
use super::{FORMAT, Head, Look};
use crate::cx::History;
use crate::error::{Error, Result};
use crate::regular;
use crate::report::Report;

impl Report {
    /// Reads a recording, including a recording of a run that was killed or is still running. The report is as of the last look.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if the file cannot be read. [`ErrorKind::Data`](crate::ErrorKind::Data), with the byte offset, if
    /// the file is not a recording or is damaged.
    pub fn from_record(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        read(regular::open(path)?).map_err(|error| error.path(path))
    }
}

fn read(from: impl Read) -> Result<Report> {
    let mut frames = Frames::new(from);
    let foreign = |why: String| {
        let error = Error::data(format!("byte 0: not a recording of a run: {why}"));
        error.help("`gristmill run --record FILE` writes them")
    };
    let head = match frames.next() {
        Ok(Frame::Line(line)) => serde_json::from_str::<Head>(&line).map_err(|e| foreign(e.to_string()))?,
        Ok(Frame::End) => return Err(foreign("it is empty".to_owned())),
        Ok(Frame::Cut) => return Err(foreign("it ends within its first line".to_owned())),
        Err(e) => return Err(foreign(e.to_string())),
    };
    if head.gristmill_record != FORMAT {
        let text = format!("its format is {}, and this version reads {FORMAT}", head.gristmill_record);
        return Err(foreign(text).help(format!("read it with gristmill {}", head.version)));
    }
    let (mut history, mut last) = (History::default(), None);
    loop {
        let at = frames.offset();
        let damaged = |why: &dyn std::fmt::Display| {
            let error = Error::data(format!("byte {at}: the recording is damaged: {why}"));
            error.help(format!("its first {at} bytes are whole: `head -c {at}` of it can be read"))
        };
        match frames.next() {
            Ok(Frame::Line(line)) => {
                let Look { update, report, picture, end } = serde_json::from_str(&line).map_err(|e| damaged(&e))?;
                history.add(update);
                last = Some((report, picture, end));
            }
            Ok(Frame::End | Frame::Cut) => break,
            Err(e) if e.kind() == io::ErrorKind::Unsupported => return Err(foreign(e.to_string())),
            Err(e) => return Err(damaged(&e)),
        }
    }
    let Some((mut report, mut picture, is_whole)) = last else {
        let text = "the recording has only its first line: the run was killed before it began";
        return Err(Error::data(text));
    };
    picture.records = history.snapshot();
    report.picture = picture.into();
    if !is_whole {
        let text =
            "the recording has no end: the run was killed or still goes on; the report shows the last written state";
        report.remarks.push(text.to_owned());
    }
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::map::Range;
    use crate::report::record::frames::frame;
    use crate::{ErrorKind, Load, MapDatasetExt};

    fn head(format: u32) -> Vec<u8> {
        let head = Head { gristmill_record: format, version: "9.9".into(), pid: 1, began: 1 };
        frame(&serde_json::to_string(&head).unwrap()).unwrap()
    }

    #[test]
    fn what_is_foreign_or_damaged_is_told_with_its_byte() {
        let message = |bytes: &[u8]| {
            let error = read(bytes).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Data);
            error.message().to_owned()
        };
        assert_eq!(message(b""), "byte 0: not a recording of a run: it is empty");
        assert!(message(b"name: demo\nsource:\n").starts_with("byte 0: not a recording of a run: "));
        assert!(message(&[0x28, 0xb5, 0x2f, 0xfd, 1, 2, 3]).starts_with("byte 0: not a recording of a run: "));
        assert!(message(&head(7)).contains("its format is 7, and this version reads 1"));
        assert!(message(&head(FORMAT)).contains("killed before it began"));
        let behind = head(FORMAT).len();
        assert!(message(&[head(FORMAT), frame("{}").unwrap()].concat()).starts_with(&format!("byte {behind}: ")));
    }

    #[test]
    fn a_report_comes_back_as_it_was() {
        let mut loader = Range::new(0, 99).map(|x| x + 1).to_iter().batch(2).loader().threads(2).build().unwrap();
        assert_eq!(loader.by_ref().count(), 50);
        let report = loader.report();
        let text = serde_json::to_string(&report).unwrap();
        let back: Report = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string(&back).unwrap(), text);
        assert_eq!(back.to_string(), report.to_string());
    }
}
