//! Samples: groups of files with a common key.

use std::path::Path;

use super::super::columns::instead;
use super::super::decode;
use super::input::Input;
use super::walk::{Member, Walk};
use crate::element::{Buffer, Element, Name, Value};
use crate::error::{Error, Result};

/// Splits a path into key and extension like webdataset, at the first dot of its last part. Returns `None` for a file
/// that belongs to no sample: without a dot, with a leading dot, or with a reserved name like `__meta__` as its first
/// part.
pub(super) fn split(path: &str) -> Option<(&str, String)> {
    let first = path.split('/').next().unwrap_or(path);
    if first.len() >= 4 && first.starts_with("__") && first.ends_with("__") {
        return None;
    }
    let base = path.rfind('/').map_or(0, |slash| slash + 1);
    let dot = path[base..].find('.').filter(|&dot| dot > 0)?;
    Some((&path[..base + dot], path[base + dot + 1..].to_lowercase()))
}

/// Name of the field that contains the key.
pub(super) const KEY: &str = "__key__";
/// Name of the field that contains the path of the shard.
pub(super) const URL: &str = "__url__";

/// Consecutive files with a common key.
#[derive(Debug)]
pub(super) struct Sample {
    /// Offset of the first header.
    start: u64,
    key: String,
    /// Extension, data and offset of the header of each file.
    parts: Vec<(String, Buffer, u64)>,
}

impl Sample {
    fn new(start: u64, key: &str) -> Self {
        Self { start, key: key.to_owned(), parts: Vec::with_capacity(4) }
    }

    fn add(&mut self, extension: String, data: Buffer, at: u64) -> Result<()> {
        if extension == KEY || extension == URL || self.parts.iter().any(|(known, ..)| *known == extension) {
            let text = format!("sample {:?} has {extension:?} twice", self.key);
            return Err(Error::data(text).offset(at));
        }
        self.parts.push((extension, data, at));
        Ok(())
    }
}

/// Samples of an archive, or of a part of an archive.
pub(super) struct Samples<I> {
    walk: Walk<I>,
    /// The first file of the next sample.
    ahead: Option<(Member, String)>,
}

impl<I: Input> Samples<I> {
    pub(super) fn new(walk: Walk<I>) -> Self {
        Self { walk, ahead: None }
    }

    pub(super) fn input(&self) -> &I {
        &self.walk.input
    }

    /// Returns true if the end was reached and no sample is pending.
    pub(super) fn is_over(&self) -> bool {
        self.walk.ended && self.ahead.is_none()
    }

    /// Returns the offset of the next sample if its first header was read; otherwise the offset of the next byte.
    pub(super) fn position(&self) -> u64 {
        self.ahead.as_ref().map_or_else(|| self.walk.input.position(), |(member, _)| member.start)
    }

    /// Returns the next sample, or `None` at the end.
    ///
    /// # Errors
    /// The errors of [`Walk::next`]; [`ErrorKind::Data`](crate::ErrorKind::Data) if a sample repeats a name.
    pub(super) fn next(&mut self) -> Result<Option<Sample>> {
        let Some((member, extension)) = self.take_ahead()? else { return Ok(None) };
        let (key, _) = split(&member.path).unwrap_or_default();
        let mut sample = Sample::new(member.start, key);
        let data = self.walk.data(&member)?;
        sample.add(extension, data, member.start)?;
        while let Some((member, extension)) = self.take_ahead()? {
            if split(&member.path).is_none_or(|(key, _)| key != sample.key) {
                self.ahead = Some((member, extension));
                break;
            }
            let data = self.walk.data(&member)?;
            sample.add(extension, data, member.start)?;
        }
        Ok(Some(sample))
    }

    /// Returns the next file that belongs to a sample, and its extension.
    fn take_ahead(&mut self) -> Result<Option<(Member, String)>> {
        if let Some(ahead) = self.ahead.take() {
            return Ok(Some(ahead));
        }
        while let Some(member) = self.walk.next()? {
            match split(&member.path) {
                Some((_, extension)) => return Ok(Some((member, extension))),
                None => self.walk.pass(&member)?,
            }
        }
        Ok(None)
    }
}

/// Options for converting a sample into an element.
#[derive(Clone, Debug, Default)]
pub(super) struct Wanted {
    /// The fields to read, in this order; `None` for all fields.
    pub(super) columns: Option<Vec<Name>>,
    pub(super) decode: bool,
    pub(super) url: bool,
}

impl Wanted {
    /// Returns the options that affect the data, to append to the identity of the files.
    pub(super) fn identity(&self) -> String {
        let columns =
            self.columns.as_ref().map_or(String::new(), |columns| format!(", columns=[{}]", columns.join(", ")));
        let decode = if self.decode { format!(", decode, images={}", decode::IMAGES) } else { String::new() };
        columns + &decode + if self.url { ", url" } else { "" }
    }

    /// Converts a sample of the shard at `path` into an element.
    pub(super) fn element(&self, sample: Sample, path: &Path) -> Result<Element> {
        let Sample { key, parts, start } = sample;
        let mut all = Vec::with_capacity(parts.len() + 2);
        all.push((Name::new(KEY), Source::Text(key)));
        if self.url {
            all.push((Name::new(URL), Source::Text(path.to_string_lossy().into_owned())));
        }
        all.extend(parts.into_iter().map(|(extension, data, at)| (Name::new(extension), Source::File(data, at))));
        let Some(columns) = &self.columns else {
            let fields = all.into_iter().map(|(name, source)| Ok((name.clone(), self.value(&name, source)?)));
            return Ok(Element::from_unique(fields.collect::<Result<_>>()?));
        };
        let mut fields = Vec::with_capacity(columns.len());
        for column in columns {
            let Some(place) = all.iter().position(|(name, _)| name == column) else {
                return Err(Error::data(instead(column, all.iter().map(|(name, _)| name.as_str()))).offset(start));
            };
            let (name, source) = all.swap_remove(place);
            let value = self.value(&name, source)?;
            fields.push((name, value));
        }
        Ok(Element::from_unique(fields))
    }

    fn value(&self, name: &str, source: Source) -> Result<Value> {
        match source {
            Source::Text(text) => Ok(text.as_str().into()),
            Source::File(data, _) if !self.decode => Ok(Value::Bytes(data)),
            Source::File(data, at) => {
                decode::by_extension(name, data).map_err(|e| e.place_in_message().of(&format!("{name:?}")).offset(at))
            }
        }
    }
}

/// Source of a field.
enum Source {
    Text(String),
    /// Data, and the offset of the header.
    File(Buffer, u64),
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected results are from webdataset 1.0.2.
    #[test]
    fn keys_and_extensions() {
        let split = |path| split(path).map(|(key, extension)| (key.to_owned(), extension));
        let is = |key: &str, extension: &str| Some((key.to_owned(), extension.to_owned()));
        assert_eq!(split("a.jpg"), is("a", "jpg"));
        assert_eq!(split("a/b.c/d.Seg.PNG"), is("a/b.c/d", "seg.png"));
        assert_eq!(split("./a.b/c."), is("./a.b/c", ""));
        assert_eq!(split("__a.jpg"), is("__a", "jpg"));
        for none in ["a", "a.b/c", ".hidden", "a.b/.hidden", "__meta__", "__x__/a.jpg", "__a.b__"] {
            assert_eq!(split(none), None, "{none}");
        }
    }
}
