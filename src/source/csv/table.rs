//! The columns of files, and the conversion of records to rows.

use std::collections::HashSet;

use super::super::columns::instead;
use super::super::delimited::{Dialect, Field, Unclosed};
use super::super::utf8;
use super::CsvOptions;
use super::types::{CsvType, Guess, bits};
use crate::element::{Array, ColumnMut, Element, Name, Value};
use crate::error::{Error, Result};

/// Fault of a record, and its offset in the record.
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

    /// Converts to an error for a record on line `line`. `start` is the record's offset in its file, if known.
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

/// All columns, with the selection of columns to read.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) dialect: Dialect,
    columns: Vec<Column>,
    /// Names of the columns to read, in the order of the elements.
    wanted: Vec<Name>,
    nulls: Nulls,
}

#[derive(Clone, Debug)]
struct Column {
    name: Name,
    kind: CsvType,
    guess: Guess,
    guessed: bool,
    /// Index of the column in elements, if the column is read.
    slot: Option<usize>,
}

/// Column of each field of a file, as an index into the columns of all files.
pub(super) type Places = Box<[usize]>;

/// Fields that mean null.
#[derive(Clone, Debug)]
struct Nulls {
    words: Vec<String>,
    /// True if an unquoted field also means null in a column of text.
    in_text: bool,
}

impl Nulls {
    fn has(&self, field: &Field<'_>, kind: CsvType) -> bool {
        let counts = kind != CsvType::Text || (self.in_text && !field.quoted);
        counts && self.words.iter().any(|word| word.as_bytes() == &*field.bytes)
    }
}

impl Table {
    /// Creates the table of files. The first file has the `header`, if any, followed by `rows`.
    ///
    /// # Errors
    /// A fault of the header. Faults of rows are reported when the rows are read.
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
        let columns: Vec<Column> = names.into_iter().map(Column::new).collect();
        let mut table = Self { dialect, columns, wanted: Vec::new(), nulls };
        table.guess_types(options, None, rows);
        Ok(table)
    }

    /// Adds the columns of another file, and guesses types also from its first `rows`. Returns the places of its
    /// fields, if the fields are not exactly the columns in order.
    ///
    /// # Errors
    /// A fault of the header.
    pub(super) fn add<R: AsRef<[u8]>>(
        &mut self,
        options: &CsvOptions,
        header: &[u8],
        rows: &[R],
    ) -> Result<Option<Places>, Fault> {
        let theirs = names(self.dialect, header)?;
        if !theirs.iter().any(|name| self.columns.iter().any(|column| column.name == *name)) {
            let text = format!("no column of {} is in the first files: {}", theirs.join(", "), self.named());
            let help = "set `header: false` and `names` for files without headers".to_owned();
            return Err(Fault { help: Some(help), ..Fault::new(0, text) });
        }
        for name in theirs {
            if !self.columns.iter().any(|column| column.name == name) {
                self.columns.push(Column::new(name));
            }
        }
        let places = self.places(header)?;
        self.guess_types(options, places.as_deref(), rows);
        Ok(places)
    }

    /// Returns the column of each field of a file, if the fields are not exactly the columns in order.
    ///
    /// # Errors
    /// A fault of the header, or an unknown column.
    pub(super) fn places(&self, header: &[u8]) -> Result<Option<Places>, Fault> {
        let names = names(self.dialect, header)?;
        if names.iter().eq(self.columns.iter().map(|column| &column.name)) {
            return Ok(None);
        }
        let place = |name: &Name| self.columns.iter().position(|column| column.name == *name);
        let places: Option<Vec<usize>> = names.iter().map(place).collect();
        places.map(|places| Some(places.into())).ok_or_else(|| {
            let text = format!("the columns are {}, those of the first files are {}", names.join(", "), self.named());
            Fault::new(0, text)
        })
    }

    fn named(&self) -> String {
        self.columns.iter().map(|column| column.name.as_str()).collect::<Vec<_>>().join(", ")
    }

    fn guess_types<R: AsRef<[u8]>>(&mut self, options: &CsvOptions, places: Option<&[usize]>, rows: &[R]) {
        for row in rows.iter().take(options.infer_rows) {
            for (at, field) in self.dialect.fields(row.as_ref()).map_while(Result::ok).enumerate() {
                // A null word does not affect the guess, even if quoted, because a column of numbers reads it as null.
                let is_null = self.nulls.words.iter().any(|word| word.as_bytes() == &*field.bytes);
                let place = places.map_or(Some(at), |places| places.get(at).copied());
                if let Some(column) = place.and_then(|place| self.columns.get_mut(place)).filter(|_| !is_null) {
                    column.guess.add(utf8::text(&field.bytes).unwrap_or("\u{fffd}"));
                }
            }
        }
        for column in &mut self.columns {
            column.kind = column.guess.result();
            if let Some((_, kind)) = options.types.iter().find(|(name, _)| *name == column.name) {
                (column.kind, column.guessed) = (*kind, false);
            }
        }
    }

    /// Selects the columns to read, in this order; all columns if none were chosen.
    ///
    /// # Errors
    /// A chosen column, or a column with a declared type, that does not exist.
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

    /// Describes the names and types of the columns that are read, and other options that affect elements.
    pub(super) fn identity(&self) -> String {
        let named = |column: &Column| column.slot.map(|slot| (slot, format!("{}: {}", column.name, column.kind)));
        let mut columns: Vec<_> = self.columns.iter().filter_map(named).collect();
        columns.sort();
        let columns: Vec<String> = columns.into_iter().map(|(_, column)| column).collect();
        let nulls = if self.nulls.in_text { format!(", nulls={:?}", self.nulls.words) } else { String::new() };
        format!(", delimiter={:?}, columns=[{}]{nulls}", char::from(self.dialect.delimiter), columns.join(", "))
    }

    /// Converts a record to an element.
    pub(super) fn element(&self, record: &[u8], places: Option<&[usize]>) -> Result<Element, Fault> {
        let mut element = Element::nulls(&self.wanted);
        let put = |slot, column: &Column, field: &Field<'_>| column.put(field, &self.nulls, element.place_mut(slot));
        self.each_field(record, places, put)?;
        Ok(element)
    }

    /// Writes a record to row `row` of the columns of a batch; returns `None` if it is invalid, or unlike the first
    /// row.
    pub(super) fn copy(
        &self,
        record: &[u8],
        places: Option<&[usize]>,
        row: usize,
        columns: &mut [&mut ColumnMut],
    ) -> Option<()> {
        let mut alike = true;
        let is_missing = |(place, _): &(usize, &Column)| places.is_some_and(|places| !places.contains(place));
        for slot in self.columns.iter().enumerate().filter(is_missing).filter_map(|(_, column)| column.slot) {
            columns[slot].put(row, Value::Null)?;
        }
        let copy = |slot: usize, column: &Column, field: &Field<'_>| {
            let mut value = Value::Null;
            column.put(field, &self.nulls, &mut value)?;
            alike &= columns[slot].put(row, value).is_some();
            Ok(())
        };
        self.each_field(record, places, copy).ok()?;
        alike.then_some(())
    }

    /// Calls `take` for each column to read, with its index in elements and its field.
    #[inline]
    fn each_field<'a>(
        &self,
        record: &'a [u8],
        places: Option<&[usize]>,
        mut take: impl FnMut(usize, &Column, &Field<'a>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let (mut count, fields) = (0, places.map_or(self.columns.len(), <[usize]>::len));
        for field in self.dialect.fields(record) {
            let field = field.as_ref().map_err(|&unclosed| Fault::from(unclosed))?;
            let place = places.map_or(Some(count), |places| places.get(count).copied());
            let Some(column) = place.and_then(|place| self.columns.get(place)) else {
                return Err(self.ragged(record, fields));
            };
            if let Some(slot) = column.slot {
                take(slot, column, field)?;
            }
            count += 1;
        }
        if count == fields { Ok(()) } else { Err(self.ragged(record, fields)) }
    }

    #[cold]
    fn ragged(&self, record: &[u8], columns: usize) -> Fault {
        let fields = self.dialect.fields(record).count();
        // The first surplus field, or the end of the last field if fields are missing.
        let extra = self.dialect.fields(record).nth(columns).and_then(Result::ok).map(|field| field.at);
        let end = record.trim_ascii_end().len();
        Fault::new(extra.unwrap_or(end), format!("{fields} fields, where there are {columns} columns"))
    }
}

impl Column {
    fn new(name: Name) -> Self {
        Self { name, kind: CsvType::Text, guess: Guess::default(), guessed: true, slot: None }
    }

    /// Writes the value of a field to `place`, which is null before.
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

/// Returns the name of a column without a name.
fn numbered(column: usize) -> Name {
    Name::new(format!("column_{column}"))
}

/// Returns the names in a header.
pub(super) fn names(dialect: Dialect, header: &[u8]) -> Result<Vec<Name>, Fault> {
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
