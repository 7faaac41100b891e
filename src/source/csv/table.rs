//! The columns of a file, and records as rows of them.

use std::collections::HashSet;

use super::super::columns::instead;
use super::super::delimited::{Dialect, Field, Unclosed};
use super::super::utf8;
use super::CsvOptions;
use super::types::{CsvType, Guess, bits};
use crate::element::{Array, ColumnMut, Element, Name, Value};
use crate::error::{Error, Result};

/// Fault of a record, and its place there.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) at: usize,
    pub(super) message: String,
    pub(super) help: Option<String>,
}

impl Fault {
    #[cold]
    fn new(at: usize, message: impl Into<String>) -> Self {
        Self { at, message: message.into(), help: None }
    }

    /// Of a record on line `line`, which begins at byte `start` of its file, if that is known.
    #[cold]
    pub(super) fn located(self, record: &[u8], start: Option<u64>, line: u64) -> Error {
        let before = &record[..self.at.min(record.len())];
        let line = line + memchr::memchr_iter(b'\n', before).count() as u64;
        let error = Error::data(self.message).line(line);
        let error = start.into_iter().fold(error, |error, start| error.offset(start + self.at as u64));
        self.help.into_iter().fold(error, Error::help)
    }
}

impl From<Unclosed> for Fault {
    #[cold]
    fn from(Unclosed(at): Unclosed) -> Self {
        let help = "all that follows it is taken for one field: close it, double it, or set another `quote`".to_owned();
        Self { help: Some(help), ..Self::new(at, "the quote that opens here is never closed") }
    }
}

/// Columns that there are, and which of them are read.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) dialect: Dialect,
    columns: Vec<Column>,
    /// Names in the order of the elements.
    wanted: Vec<Name>,
    nulls: Nulls,
}

#[derive(Clone, Debug)]
struct Column {
    name: Name,
    kind: CsvType,
    guessed: bool,
    /// Its place in elements, if it is read.
    slot: Option<usize>,
}

/// The fields that stand for nothing.
#[derive(Clone, Debug)]
struct Nulls {
    words: Vec<String>,
    /// Whether they are in text, too, where they are not quoted.
    in_text: bool,
}

impl Nulls {
    fn has(&self, field: &Field<'_>, kind: CsvType) -> bool {
        let counts = kind != CsvType::Text || (self.in_text && !field.quoted);
        counts && self.words.iter().any(|word| word.as_bytes() == &*field.bytes)
    }
}

impl Table {
    /// The table of a file whose first records are `rows`, behind its `header` if it has one.
    ///
    /// # Errors
    /// A fault of the header. Those of rows are for who reads them.
    pub(super) fn new<R: AsRef<[u8]>>(
        options: &CsvOptions,
        dialect: Dialect,
        header: Option<&[u8]>,
        rows: &[R],
    ) -> Result<Self, Fault> {
        let names = match (header, &options.names) {
            (_, Some(names)) => names.clone(),
            (Some(header), None) => names(dialect, header)?,
            (None, None) => match rows.first() {
                Some(row) => (0..dialect.fields(row.as_ref()).count()).map(numbered).collect(),
                None => Vec::new(),
            },
        };
        let nulls = match &options.nulls {
            Some(words) => Nulls { words: words.clone(), in_text: true },
            None => Nulls { words: vec![String::new()], in_text: false },
        };
        let column = |name| Column { name, kind: CsvType::Text, guessed: true, slot: None };
        let columns: Vec<Column> = names.into_iter().map(column).collect();
        let mut table = Self { dialect, columns, wanted: Vec::new(), nulls };
        table.type_columns(options, rows);
        Ok(table)
    }

    fn type_columns<R: AsRef<[u8]>>(&mut self, options: &CsvOptions, rows: &[R]) {
        let mut guesses = vec![Guess::default(); self.columns.len()];
        rows.iter().take(options.infer_rows).for_each(|row| self.guess(&mut guesses, row.as_ref()));
        for (column, guess) in self.columns.iter_mut().zip(guesses) {
            column.kind = guess.result();
            if let Some((_, kind)) = options.types.iter().find(|(name, _)| *name == column.name) {
                (column.kind, column.guessed) = (*kind, false);
            }
        }
    }

    fn guess(&self, guesses: &mut [Guess], row: &[u8]) {
        for (field, guess) in self.dialect.fields(row).map_while(Result::ok).zip(guesses) {
            // As a number it is null if it is as anything.
            let is_null = self.nulls.words.iter().any(|word| word.as_bytes() == &*field.bytes);
            if !is_null {
                guess.add(utf8::text(&field.bytes).unwrap_or("\u{fffd}"));
            }
        }
    }

    /// Reads these columns only, in this order; all of them if they are not said.
    ///
    /// # Errors
    /// A column, here or among those with types, that is not there.
    pub(super) fn choose(mut self, options: &CsvOptions) -> Result<Self> {
        let names: Vec<Name> = self.columns.iter().map(|column| column.name.clone()).collect();
        let typed = options.types.iter().map(|(name, _)| name);
        if let Some(name) = options.columns.iter().flatten().chain(typed).find(|name| !names.contains(name)) {
            return Err(Error::data(instead(name, names.iter().map(Name::as_str))));
        }
        self.wanted = options.columns.clone().unwrap_or(names);
        for column in &mut self.columns {
            column.slot = self.wanted.iter().position(|name| *name == column.name);
        }
        Ok(self)
    }

    /// Names and types, as far as they shape elements.
    pub(super) fn identity(&self) -> String {
        let named = |column: &Column| column.slot.map(|slot| (slot, format!("{}: {}", column.name, column.kind)));
        let mut columns: Vec<_> = self.columns.iter().filter_map(named).collect();
        columns.sort();
        let columns: Vec<String> = columns.into_iter().map(|(_, column)| column).collect();
        let nulls = if self.nulls.in_text { format!(", nulls={:?}", self.nulls.words) } else { String::new() };
        format!(", delimiter={:?}, columns=[{}]{nulls}", char::from(self.dialect.delimiter), columns.join(", "))
    }

    /// The element of a record.
    pub(super) fn element(&self, record: &[u8]) -> Result<Element, Fault> {
        let mut element = Element::nulls(&self.wanted);
        self.each_field(record, |slot, column, field| column.put(field, &self.nulls, element.place_mut(slot)))?;
        Ok(element)
    }

    /// Writes a record as row `row` into the columns of a batch of elements; `None` if it is bad, or not like the first.
    pub(super) fn copy(&self, record: &[u8], row: usize, columns: &mut [&mut ColumnMut]) -> Option<()> {
        let mut alike = true;
        let copy = |slot: usize, column: &Column, field: &Field<'_>| {
            let mut value = Value::Null;
            column.put(field, &self.nulls, &mut value)?;
            alike &= columns[slot].put(row, value).is_some();
            Ok(())
        };
        self.each_field(record, copy).ok()?;
        alike.then_some(())
    }

    /// Gives `take` every column that is read: its place in elements, and the field.
    #[inline]
    fn each_field<'a>(
        &self,
        record: &'a [u8],
        mut take: impl FnMut(usize, &Column, &Field<'a>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let mut count = 0;
        for field in self.dialect.fields(record) {
            let field = field.as_ref().map_err(|&unclosed| Fault::from(unclosed))?;
            let Some(column) = self.columns.get(count) else { return Err(self.ragged(record)) };
            if let Some(slot) = column.slot {
                take(slot, column, field)?;
            }
            count += 1;
        }
        if count == self.columns.len() { Ok(()) } else { Err(self.ragged(record)) }
    }

    #[cold]
    fn ragged(&self, record: &[u8]) -> Fault {
        let (fields, columns) = (self.dialect.fields(record).count(), self.columns.len());
        // The first field too many, or the end of the last one there is.
        let extra = self.dialect.fields(record).nth(columns).and_then(Result::ok).map(|field| field.at);
        let end = record.trim_ascii_end().len();
        Fault::new(extra.unwrap_or(end), format!("{fields} fields, where there are {columns} columns"))
    }

    /// Checks that the header of another file has the same columns.
    pub(super) fn check_header(&self, header: &[u8]) -> Result<(), Fault> {
        let names = names(self.dialect, header)?;
        if names.iter().eq(self.columns.iter().map(|column| &column.name)) {
            return Ok(());
        }
        let ours = self.columns.iter().map(|column| column.name.as_str()).collect::<Vec<_>>().join(", ");
        Err(Fault::new(0, format!("the columns are {}, those of the first file are {ours}", names.join(", "))))
    }
}

impl Column {
    /// Writes the value of a field to its place, which is null.
    #[inline]
    fn put(&self, field: &Field<'_>, nulls: &Nulls, place: &mut Value) -> Result<(), Fault> {
        if nulls.has(field, self.kind) {
            return Ok(());
        }
        let text = text(field)?;
        match self.kind {
            CsvType::Text => *place = text.into(),
            CsvType::Number(dtype) => {
                let bits = bits(dtype, text).ok_or_else(|| self.wrong(field, text))?;
                *place = Array::from_bits(dtype, bits).into();
            }
        }
        Ok(())
    }

    #[cold]
    fn wrong(&self, field: &Field<'_>, text: &str) -> Fault {
        const SHOWN: usize = 40;
        let shown: String = text.chars().take(SHOWN).collect();
        let fault = Fault::new(field.at, format!("column {:?}: {shown:?} is no {}", self.name, self.kind));
        let help = format!("the type was guessed from the first rows: declare it by `types: {{{}: str}}`", self.name);
        Fault { help: self.guessed.then_some(help), ..fault }
    }
}

fn text<'a>(field: &'a Field<'_>) -> Result<&'a str, Fault> {
    utf8::text(&field.bytes).map_err(|(at, message)| Fault::new(field.at + usize::from(field.quoted) + at, message))
}

/// The name of a column that has none.
fn numbered(column: usize) -> Name {
    Name::new(format!("column_{column}"))
}

/// The names in a header.
fn names(dialect: Dialect, header: &[u8]) -> Result<Vec<Name>, Fault> {
    let (mut names, mut seen) = (Vec::new(), HashSet::new());
    for (number, field) in dialect.fields(header).enumerate() {
        let field = field?;
        let text = text(&field)?;
        let name = if text.is_empty() { numbered(number) } else { Name::new(text) };
        if !seen.insert(name.clone()) {
            return Err(Fault::new(field.at, format!("two columns are named {name:?}")));
        }
        names.push(name);
    }
    Ok(names)
}
