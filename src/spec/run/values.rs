//! Types of run options.

use std::path::PathBuf;
use std::time::Duration;

use crate::edits::Edits;
use crate::error::{Error, Result};
use crate::exec::Executor;
use crate::part::Part;
use crate::spec::arguments::{Arguments, Kind, arguments, words};
use crate::spec::decode::Fields;
use crate::spec::node::{Node, Tree};
use crate::spec::values::{Amount, AtLeast, Decode, decode_as};
use crate::spec::yaml;
use crate::units::budget::check_budget;

/// A number of threads, or `auto`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Threads(pub(super) Executor);

decode_as!(Threads, Kind::Either(&[AtLeast::<1>::KIND, Kind::Words(&["auto"])]), |node| {
    match &node.value {
        Tree::Str(word) if word.as_str() == "auto" => Ok(Self(Executor::Auto)),
        _ => AtLeast::<1>::decode(node).map(|AtLeast(count)| Self(Executor::Threads(count as usize))),
    }
});

/// Bytes for worker processes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Budget(pub(super) u64);

decode_as!(Budget, Kind::Memory, |node| {
    let bytes = Amount::decode(node)?.into();
    check_budget(bytes).map_err(|e| node.error(e.message()).help(e.help_text().unwrap_or_default()))?;
    Ok(Self(bytes))
});

/// A time of some seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Seconds(pub(super) Duration);

decode_as!(Seconds, Kind::Seconds, |node| {
    let seconds = f64::decode(node)?;
    let time = Duration::try_from_secs_f64(seconds);
    time.map(Self).map_err(|_| node.error(format!("is {seconds}, and must be a number of seconds from 0 on")))
});

/// A time limit of some seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::spec) struct Limit(pub(in crate::spec) Duration);

decode_as!(Limit, Kind::Seconds, |node| {
    match Seconds::decode(node)? {
        Seconds(Duration::ZERO) => Err(node.error("is 0, and must be more than 0 seconds")),
        Seconds(time) => Ok(Self(time)),
    }
});

/// A time limit of some seconds, or none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Deadline(pub(super) Option<Duration>);

decode_as!(Deadline, Kind::Either(&[Kind::Seconds, Kind::Words(&["none"])]), |node| {
    match &node.value {
        Tree::Str(word) if word == "none" => Ok(Self(None)),
        _ => Limit::decode(node).map(|Limit(time)| Self(Some(time))),
    }
});

/// Whether an element that kills every worker process is skipped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct OnPoison(pub(super) bool);

words!(OnPoison { "error" => OnPoison(false), "skip" => OnPoison(true) });

/// Whether elements that fail become padding.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct OnFailed(pub(super) bool);

words!(OnFailed { "error" => OnFailed(false), "pad" => OnFailed(true) });

/// An address of metrics: a port, or text.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Address(pub(super) String);

decode_as!(Address, Kind::Either(&[Kind::Text, Kind::Integer { min: 0, max: u16::MAX as u64 }]), |node| {
    match node.value {
        Tree::Int(port) => match u16::try_from(port) {
            Ok(port) => Ok(Self(port.to_string())),
            Err(_) => Err(node.error(format!("{port} is no port"))),
        },
        _ => String::decode(node).map(Self),
    }
});

arguments! {
    pub(super) struct ShareArgs {
        /// Number of the part, from 0 on.
        index: AtLeast<0>,
        /// Number of equal parts of each batch.
        count: AtLeast<1>,
    }
}

/// A part of every batch: `3/64`, or `{index: 3, count: 64}`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Share(pub(super) Part);

impl Decode for Share {
    const KIND: Kind = Kind::Either(&[Kind::Share, Kind::Section(&ShareArgs::ABOUT)]);

    fn decode(node: &Node) -> Result<Self> {
        if let Tree::Str(text) = &node.value {
            let part = text.parse::<Part>();
            return part.map(Self).map_err(|e| node.error(e.message()).help(e.help_text().unwrap_or_default()));
        }
        let fields = Fields::new(node)?;
        let args = ShareArgs::read(&fields)?;
        fields.finish()?;
        // The start of the pass checks that the part exists.
        let number = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        Ok(Self(Part::of(number(args.index.0), number(args.count.0))))
    }
}

/// Edits of a run: the file that lists them, or the list.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum EditLog {
    File(PathBuf),
    Listed(Edits),
}

impl Decode for EditLog {
    const KIND: Kind = Kind::Either(&[Kind::Path, Edits::KIND]);

    fn decode(node: &Node) -> Result<Self> {
        match &node.value {
            Tree::Str(file) => Ok(Self::File(file.into())),
            _ => Edits::decode(node).map(Self::Listed),
        }
    }
}

impl EditLog {
    /// Returns the edits. A file without an edit is empty, or has only comments.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if the file cannot be read, [`ErrorKind::Config`](crate::ErrorKind::Config)
    /// with its line for an invalid edit.
    pub(super) fn edits(&self) -> Result<Edits> {
        let file = match self {
            Self::Listed(edits) => return Ok(edits.clone()),
            Self::File(file) => file,
        };
        let text = std::fs::read_to_string(file).map_err(|e| Error::io(e, file))?;
        if text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
            return Ok(Edits::default());
        }
        yaml::parse(&text).and_then(|node| Edits::decode(&node)).map_err(|e| e.path(file))
    }
}
