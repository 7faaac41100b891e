//! The operation on an element: columns of text become arrays of ids.

use std::cell::RefCell;
use std::sync::Arc;

use super::encoder::TextEncoder;
use crate::element::{Array, Buffer, DType, Element, Name, Value};
use crate::error::{Error, Result};

/// Maximum number of scratch ids that a thread keeps between texts (4 MiB).
const KEPT_IDS: usize = 1 << 20;

#[derive(Default)]
struct Scratch {
    ids: Vec<u32>,
    ends: Vec<usize>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// An operation that converts columns of text to columns of ids: `i32`, one dimension.
///
/// A single column becomes `tokens`; several columns become `<column>_tokens` each. Ids replace their text and are added at
/// the end of the element; [`keep_text`](Self::keep_text) also keeps the text. Cloning shares the encoder.
#[derive(Clone, Debug)]
pub struct Tokenise {
    encoder: Arc<TextEncoder>,
    columns: Vec<Column>,
    keep_text: bool,
}

#[derive(Clone, Debug)]
struct Column {
    text: Name,
    tokens: Name,
}

impl Tokenise {
    /// Tokenises a single column into `tokens`.
    pub fn column(encoder: impl Into<Arc<TextEncoder>>, column: impl AsRef<str>) -> Self {
        let column = Column { text: Name::new(column), tokens: Name::new("tokens") };
        Self { encoder: encoder.into(), columns: vec![column], keep_text: false }
    }

    /// Tokenises several columns, each into `<column>_tokens`.
    pub fn columns<C: AsRef<str>>(encoder: impl Into<Arc<TextEncoder>>, columns: impl IntoIterator<Item = C>) -> Self {
        let column = |c: C| Column { text: Name::new(&c), tokens: Name::from(format!("{}_tokens", c.as_ref())) };
        Self { encoder: encoder.into(), columns: columns.into_iter().map(column).collect(), keep_text: false }
    }

    /// Renames the columns of ids, in the order of the columns. Columns without a new name keep their default names.
    #[must_use]
    pub fn named<N: AsRef<str>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        for (column, name) in self.columns.iter_mut().zip(names) {
            column.tokens = Name::new(name);
        }
        self
    }

    /// Sets whether the text stays in the element. By default it is removed.
    #[must_use]
    pub fn keep_text(mut self, yes: bool) -> Self {
        self.keep_text = yes;
        self
    }

    /// Returns the shared encoder.
    pub fn encoder(&self) -> &Arc<TextEncoder> {
        &self.encoder
    }

    /// Returns the arguments that affect the data, for the fingerprint of a pipeline.
    pub fn params(&self) -> String {
        let columns: Vec<_> = self.columns.iter().map(|c| format!("{}->{}", c.text, c.tokens)).collect();
        let keep = if self.keep_text { ", keep_text" } else { "" };
        format!("{}, {}{keep}", columns.join(" "), self.encoder.params())
    }

    /// Checks the columns; `chunks` is true if an element may become several.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if there is no column, if two columns of ids share a name, or if
    /// [`Overflow::Chunk`](super::Overflow::Chunk) is set without `chunks` or with several columns.
    pub fn check(&self, chunks: bool) -> Result<()> {
        if self.columns.is_empty() {
            return Err(Error::config("no column to tokenise"));
        }
        for (at, column) in self.columns.iter().enumerate() {
            if self.columns[..at].iter().any(|c| c.tokens == column.tokens) {
                return Err(Error::config(format!("two columns of ids are called {:?}", column.tokens.as_str())));
            }
        }
        if self.encoder.may_split() && !chunks {
            return Err(Error::config("overflow is chunk, so that a text may become several elements")
                .help("use `tokenise_chunks`, or set overflow to truncate or error"));
        }
        if self.encoder.may_split() && self.columns.len() > 1 {
            let n = self.columns.len();
            return Err(Error::config(format!(
                "overflow is chunk with {n} columns, limit 1: their pieces do not match"
            )));
        }
        Ok(())
    }

    /// Tokenises an element. Keeps only the first piece of a split text, which [`check`](Self::check) rules out.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) if a column is missing or not text. Also fails like
    /// [`TextEncoder::encode_into`].
    pub fn apply(&self, element: Element) -> Result<Element> {
        self.apply_counted(element).map(|(element, _)| element)
    }

    /// Tokenises an element into one element for each piece of its text. Each has a copy of the other columns.
    ///
    /// # Errors
    /// Fails like [`apply`](Self::apply).
    pub fn apply_chunks(&self, element: Element) -> Result<Vec<Element>> {
        self.apply_chunks_counted(element).map(|(elements, _)| elements)
    }

    /// Works like [`apply`](Self::apply). Also returns the number of truncated texts.
    pub(super) fn apply_counted(&self, mut element: Element) -> Result<(Element, u64)> {
        let mut cut = 0;
        for column in &self.columns {
            let text = self.take(&mut element, &column.text)?;
            let (array, lost) = self.with_ids(&column.text, &text, |ids, ends| to_array(&ids[..ends[0]]))?;
            element.insert(&column.tokens, array?);
            cut += u64::from(lost > 0);
        }
        Ok((element, cut))
    }

    /// Works like [`apply_chunks`](Self::apply_chunks). Also returns the number of truncated texts.
    pub(super) fn apply_chunks_counted(&self, mut element: Element) -> Result<(Vec<Element>, u64)> {
        let [column] = &*self.columns else {
            return self.apply_counted(element).map(|(element, cut)| (vec![element], cut));
        };
        let text = self.take(&mut element, &column.text)?;
        let (elements, lost) = self.with_ids(&column.text, &text, |ids, ends| {
            let starts = std::iter::once(0).chain(ends.iter().copied());
            let piece =
                |(start, &end): (usize, &usize)| Ok(element.clone().with(&column.tokens, to_array(&ids[start..end])?));
            starts.zip(ends).map(piece).collect::<Result<Vec<_>>>()
        })?;
        Ok((elements?, u64::from(lost > 0)))
    }

    /// Takes the value of a text column out of the element, or clones it if the text is kept.
    fn take(&self, element: &mut Element, column: &str) -> Result<Value> {
        let taken = if self.keep_text { element.get(column).cloned() } else { element.remove(column) };
        // Called for its error, which lists the existing columns.
        taken.map_or_else(|| element.field(column).cloned(), Ok)
    }

    /// Encodes a text into this thread's scratch and calls `f` with the ids and the ends of their pieces. Also returns the
    /// number of tokens cut.
    fn with_ids<R>(&self, column: &str, text: &Value, f: impl FnOnce(&[u32], &[usize]) -> R) -> Result<(R, usize)> {
        let text = as_text(column, text)?;
        let mut scratch = SCRATCH.take();
        scratch.ids.clear();
        scratch.ends.clear();
        let encoded = self.encoder.encode_into(text, &mut scratch.ids, &mut scratch.ends);
        let result = encoded.map(|cut| (f(&scratch.ids, &scratch.ends), cut));
        scratch.ids.truncate(KEPT_IDS);
        scratch.ids.shrink_to(KEPT_IDS);
        SCRATCH.set(scratch);
        result.map_err(|e| e.help(format!("the text is in column {column:?}")))
    }
}

fn to_array(ids: &[u32]) -> Result<Array> {
    Array::new(DType::I32, &[ids.len()], Buffer::copy_from(bytemuck::cast_slice(ids)))
}

fn as_text<'a>(column: &str, value: &'a Value) -> Result<&'a str> {
    match value {
        Value::Str(text) => Ok(text),
        Value::Bytes(bytes) => std::str::from_utf8(bytes.as_bytes()).map_err(|e| {
            Error::data(format!("column {column:?} is not utf-8 after {} bytes", e.valid_up_to())).caused_by(e)
        }),
        other => Err(Error::data(format!("column {column:?} is {}, expected text", other.kind()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo;
    use crate::error::ErrorKind;
    use crate::text::{Overflow, TokeniseOptions};

    fn encoder(options: TokeniseOptions) -> TextEncoder {
        TextEncoder::new(demo::tokenizer().unwrap(), &options).unwrap()
    }

    fn plain() -> TextEncoder {
        encoder(TokeniseOptions::default())
    }

    fn ids(element: &Element, column: &str) -> Vec<u32> {
        element.array(column).unwrap().as_slice::<i32>().unwrap().iter().map(|&id| id as u32).collect()
    }

    fn names(element: &Element) -> Vec<&str> {
        element.iter().map(|(name, _)| name).collect()
    }

    fn sample() -> Element {
        let bytes = Value::Bytes(Buffer::copy_from("Rain, then hail.".as_bytes()));
        Element::new().with("text", "The mill runs.").with("n", Array::scalar(3i32)).with("title", bytes)
    }

    #[test]
    fn columns_become_ids_and_the_text_stays_if_asked() {
        let expected = demo::tokenizer().unwrap().encode("The mill runs.").unwrap();
        let one = Tokenise::column(plain(), "text").apply(sample()).unwrap();
        assert_eq!((names(&one), ids(&one, "tokens")), (vec!["n", "title", "tokens"], expected.clone()));
        let two = Tokenise::columns(plain(), ["title", "text"]).keep_text(true).apply(sample()).unwrap();
        assert_eq!(names(&two), ["text", "n", "title", "title_tokens", "text_tokens"]);
        assert_eq!(ids(&two, "text_tokens"), expected);
        assert_eq!(demo::tokenizer().unwrap().decode(&ids(&two, "title_tokens")).unwrap(), "Rain, then hail.");
        let named = Tokenise::columns(plain(), ["title", "text"]).named(["inputs", "targets"]).apply(sample()).unwrap();
        assert_eq!(names(&named), ["n", "inputs", "targets"]);
        let in_place = Tokenise::column(plain(), "text").named(["text"]).apply(sample()).unwrap();
        assert_eq!(ids(&in_place, "text"), expected);
    }

    #[test]
    fn pieces_carry_the_other_columns() {
        let options = TokeniseOptions::default().append_eos(0).max_len(3).overflow(Overflow::Chunk);
        let op = Tokenise::column(encoder(options), "text");
        let pieces = op.apply_chunks(sample()).unwrap();
        assert!(pieces.len() > 1 && pieces.iter().all(|p| p.array("n").unwrap().as_i64() == Some(3)));
        let joined: Vec<u32> = pieces.iter().flat_map(|p| ids(p, "tokens")).collect();
        let whole = [demo::tokenizer().unwrap().encode("The mill runs.").unwrap(), vec![0]].concat();
        assert_eq!(joined, whole);
        assert_eq!(op.encoder().length_counts().chunks, pieces.len() as u64);
    }

    #[test]
    fn what_is_not_text_is_an_error_that_names_the_column() {
        let say = |column: &str| Tokenise::column(plain(), column).apply(sample()).unwrap_err().to_string();
        assert_eq!(say("n"), r#"column "n" is array, expected text"#);
        assert_eq!(say("body"), r#"no field "body"; the element has text, n, title"#);
        let broken = Element::new().with("text", Value::Bytes(Buffer::copy_from(b"ok\xff")));
        let error = Tokenise::column(plain(), "text").apply(broken).unwrap_err();
        assert_eq!(error.message(), r#"column "text" is not utf-8 after 2 bytes"#);
        let limit = encoder(TokeniseOptions::default().max_len(1).overflow(Overflow::Error));
        assert_eq!(Tokenise::column(limit, "text").apply(sample()).unwrap_err().kind(), ErrorKind::Data);
    }

    #[test]
    fn arguments_are_checked_and_all_in_the_fingerprint() {
        let chunk = || encoder(TokeniseOptions::default().max_len(8).overflow(Overflow::Chunk));
        assert!(Tokenise::column(chunk(), "text").check(true).is_ok());
        assert!(Tokenise::column(chunk(), "text").check(false).is_err());
        assert!(Tokenise::columns(chunk(), ["a", "b"]).check(true).is_err());
        assert!(Tokenise::columns(plain(), ["a", "b"]).named(["x", "x"]).check(false).is_err());
        assert!(Tokenise::columns(plain(), [""; 0]).check(false).is_err());
        let options = TokeniseOptions::default().prepend_bos(1).append_eos(0).max_len(8);
        let params = Tokenise::column(encoder(options), "text").keep_text(true).params();
        let hash = demo::tokenizer().unwrap().fingerprint().to_owned();
        let around = "bos=1, eos=0, max_len=8, overflow=truncate, keep_text";
        assert_eq!(params, format!("text->tokens, tokenizer={hash}, {around}"));
    }
}
