//! The serialised form of an error, which is sent to another process.

use std::error::Error as StdError;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::packed::{Packed, pack};
use super::{Context, Error, ErrorKind, Repr};

/// Maximum number of causes: a longer chain is cyclic.
const MAX_CAUSES: usize = 16;

/// Serialised form of an [`Error`]. Underlying errors are reduced to their messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Told {
    kind: ErrorKind,
    message: String,
    help: Option<String>,
    stage: Option<String>,
    /// Bytes of the path, which may not be UTF-8.
    path: Option<Vec<u8>>,
    line: Option<u64>,
    record: Option<u64>,
    offset: Option<u64>,
    index: Option<u64>,
    causes: Vec<String>,
    /// First cause that is an error of another language: its position among the causes, and its bytes.
    packed: Option<(usize, Vec<u8>)>,
}

impl From<&Error> for Told {
    fn from(error: &Error) -> Self {
        let (repr, context) = (&error.0, &error.0.context);
        let causes = std::iter::successors(error.source(), |&cause| cause.source());
        Self {
            kind: repr.kind,
            message: repr.message.clone(),
            help: repr.help.clone(),
            stage: context.stage.clone(),
            path: context.path.as_ref().map(|path| path.as_os_str().as_bytes().to_vec()),
            line: context.line,
            record: context.record,
            offset: context.offset,
            index: context.index,
            packed: causes.clone().take(MAX_CAUSES).enumerate().find_map(|(at, cause)| Some((at, pack(cause)?))),
            causes: causes.take(MAX_CAUSES).map(ToString::to_string).collect(),
        }
    }
}

impl Told {
    /// Serialises an error as bounded text: the context is part of the message, and the causes are left out.
    pub(crate) fn in_words(error: &Error) -> Self {
        let help = error.help_text().map(shorten);
        Self::from(&help.into_iter().fold(Error::new(error.kind(), shorten(&error.to_string())), Error::help))
    }

    /// Restores the error.
    pub(crate) fn into_error(self) -> Error {
        let context = Context {
            stage: self.stage,
            path: self.path.map(|bytes| PathBuf::from(OsString::from_vec(bytes))),
            line: self.line,
            record: self.record,
            offset: self.offset,
            index: self.index,
        };
        let mut causes = self.causes;
        let source: Option<Box<dyn StdError + Send + Sync>> = match self.packed {
            // The other causes contain nothing that this cause does not contain.
            Some((at, bytes)) if at < causes.len() => Some(Box::new(Packed::new(causes.swap_remove(at), bytes))),
            _ => {
                let chain = |behind, message| Some(Box::new(Cause { message, behind }));
                let source = causes.into_iter().rev().fold(None, chain);
                source.map(|cause| -> Box<dyn StdError + Send + Sync> { cause })
            }
        };
        Error(Box::new(Repr { kind: self.kind, message: self.message, help: self.help, context, source }))
    }
}

/// Truncates text that is too long for a message.
fn shorten(text: &str) -> String {
    const LIMIT: usize = 16 << 10;
    if text.len() <= LIMIT {
        return text.to_owned();
    }
    let end = (0..=LIMIT).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    format!("{}…", &text[..end])
}

/// Message of an underlying error, as received from another process.
#[derive(Debug)]
struct Cause {
    message: String,
    behind: Option<Box<Cause>>,
}

display_as!(Cause, |self, f| f.write_str(&self.message));

impl StdError for Cause {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.behind.as_deref().map(|cause| cause as _)
    }
}

#[cfg(all(test, feature = "workers"))]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_on_the_way() {
        let inner = Error::io(std::io::Error::other("disk on fire"), "inner");
        let path = PathBuf::from(OsString::from_vec(vec![b'a', 0xff]));
        let error = Error::new(ErrorKind::Unsupported, "no").caused_by(inner).help("try again").path(path);
        let error = error.line(1).record(u64::MAX).offset(3).index(4).stage("2 map");
        let json = serde_json::to_string(&Told::from(&error)).unwrap();
        let again = serde_json::from_str::<Told>(&json).unwrap().into_error();
        assert_eq!(format!("{again:?}"), format!("{error:?}"));
        assert_eq!((again.kind(), again.file()), (error.kind(), error.file()));
        let causes =
            |e: &Error| std::iter::successors(e.source(), |&c| c.source()).map(|c| c.to_string()).collect::<Vec<_>>();
        assert_eq!(causes(&again), ["inner: disk on fire", "disk on fire"]);
        assert_eq!(causes(&again), causes(&error));
    }

    #[test]
    fn words_alone_say_where_and_end() {
        let error = Error::data("é".repeat(1 << 20)).path("a.json").help("x".repeat(1 << 20));
        let short = Told::in_words(&error.caused_by(Error::data("behind"))).into_error();
        assert!(short.to_string().starts_with("a.json: é") && short.to_string().ends_with("é…"));
        assert!(short.to_string().len() < 20_000 && short.help_text().unwrap().len() < 20_000);
        assert!(short.kind() == ErrorKind::Data && short.file().is_none() && short.source().is_none());
    }

    #[test]
    fn an_endless_chain_of_causes_is_cut() {
        let error = (0..50).fold(Error::data("first"), |e, i| Error::data(format!("{i}")).caused_by(e));
        assert_eq!(Told::from(&error).causes.len(), MAX_CAUSES);
    }
}
