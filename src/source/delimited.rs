//! Delimited text: framing of records and splitting of fields, with quotes. Compiled without the feature `csv` too, to
//! detect such files.
//!
//! Follows RFC 4180. In cases that the RFC leaves open, follows the `csv` crate and Python's `csv`: a quote is an
//! ordinary character inside a field that does not begin with a quote. After the closing quote of a field, all
//! characters are ordinary.
//!
//! `csv-core` 0.1.13 is not used for splitting. It does not report the start of a field, whether the field was quoted,
//! or whether its quote was closed. Errors and nulls need these facts. It also copies every byte through its table; a
//! field here is a view of the record. Both were measured in one run, with one reader and one buffer of `csv-core` for
//! all records, in nanoseconds per record:
//!
//! | record | `csv-core` | here |
//! |---|--:|--:|
//! | `1,2.5,name 1,"oat, or ""rye"" 1"` | 28 | 37 |
//! | four numbers | 16 | 10 |
//! | 40 short fields | 152 | 87 |
//! | 240 bytes of text | 98 | 14 |
//! | 240 bytes of text in quotes | 109 | 17 |
//!
//! An element from the first record takes 160 ns, of which `csv-core` would save 9.

use std::borrow::Cow;

use memchr::{memchr, memchr2};

/// Delimiter and quote of a delimited text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dialect {
    pub(crate) delimiter: u8,
    pub(crate) quote: Option<u8>,
}

/// A field of a record.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Field<'a> {
    /// Offset in the record of the first byte of the field, including its quote.
    pub(crate) at: usize,
    /// Content without quotes.
    pub(crate) bytes: Cow<'a, [u8]>,
    pub(crate) quoted: bool,
}

/// Error for a quote that is not closed. Holds the offset of the opening quote in the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unclosed(pub(crate) usize);

impl Dialect {
    /// Delimiters to guess, the most likely first.
    const GUESSED: [u8; 4] = *b",\t;|";
    /// Maximum number of records that a guess inspects.
    const LOOKED_AT: usize = 32;

    /// Returns true if quotes are open at the end of `line`, a whole line. `inside` is true if quotes are open at its
    /// beginning.
    pub(crate) fn ends_inside(self, line: &[u8], mut inside: bool) -> bool {
        let Some(quote) = self.quote else { return false };
        let mut at = 0;
        while let Some(next) = memchr(quote, &line[at..]) {
            let found = at + next;
            at = found + 1;
            if inside && line.get(at) == Some(&quote) {
                at += 1;
            } else if inside {
                inside = false;
            } else {
                inside = found == 0 || line[found - 1] == self.delimiter;
            }
        }
        inside
    }

    /// Calls `found` with the offset of each record in `text`. Skips empty lines.
    pub(crate) fn each_record(self, text: &[u8], mut found: impl FnMut(usize)) {
        let (mut at, mut inside) = (0, false);
        while at < text.len() {
            let end = memchr(b'\n', &text[at..]).map_or(text.len(), |end| at + end);
            let line = &text[at..end];
            if !inside && !matches!(line, b"" | b"\r") {
                found(at);
            }
            inside = self.ends_inside(line, inside);
            at = end + 1;
        }
    }

    /// Returns the fields of a record. A record ends at a line end outside of quotes, or with the bytes.
    pub(crate) fn fields(self, record: &[u8]) -> Fields<'_> {
        Fields { dialect: self, record, at: Some(0) }
    }

    /// Guesses the delimiter of a text from its beginning. The guess splits all inspected records into an equal number
    /// of fields, at least 2. Among several candidates, the delimiter with the most fields is returned. Ignores the
    /// last line if `is_cut`.
    pub(crate) fn guess(head: &[u8], is_cut: bool, least_records: usize) -> Option<u8> {
        let whole = if is_cut { memchr::memrchr(b'\n', head).map_or(0, |end| end + 1) } else { head.len() };
        let text = head[..whole].strip_prefix(b"\xef\xbb\xbf").unwrap_or(&head[..whole]);
        let fields = |delimiter| Self { delimiter, quote: Some(b'"') }.equal_fields(text, least_records);
        let counted = Self::GUESSED.into_iter().rev().filter_map(|delimiter| Some((fields(delimiter)?, delimiter)));
        counted.max_by_key(|(fields, _)| *fields).map(|(_, delimiter)| delimiter)
    }

    /// Returns the number of fields per record if the first records have an equal number, at least 2.
    fn equal_fields(self, text: &[u8], least_records: usize) -> Option<usize> {
        let mut starts = Vec::new();
        self.each_record(text, |at| starts.push(at));
        let ends = starts.iter().skip(1).copied().chain([text.len()]);
        let counts = starts.iter().zip(ends).take(Self::LOOKED_AT).map(|(&start, end)| {
            self.fields(&text[start..end]).try_fold(0, |count, field| field.map(|_| count + 1)).ok()
        });
        let counts = counts.collect::<Option<Vec<usize>>>()?;
        let first = *counts.first()?;
        (first >= 2 && counts.len() >= least_records && counts.iter().all(|&count| count == first)).then_some(first)
    }
}

/// Iterator of [`Dialect::fields`].
#[derive(Clone, Debug)]
pub(crate) struct Fields<'a> {
    dialect: Dialect,
    record: &'a [u8],
    /// Offset of the next field, if there is one.
    at: Option<usize>,
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Field<'a>, Unclosed>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let at = self.at.take()?;
        if self.dialect.quote.is_some_and(|quote| self.record.get(at) == Some(&quote)) {
            return Some(self.quoted(at));
        }
        let bytes = Cow::Borrowed(self.plain(at));
        Some(Ok(Field { at, bytes, quoted: false }))
    }
}

impl<'a> Fields<'a> {
    /// Returns the bytes up to the next delimiter or the end. The next field begins after the delimiter.
    #[inline]
    fn plain(&mut self, at: usize) -> &'a [u8] {
        let rest = &self.record[at..];
        match end_of_field(self.dialect.delimiter, rest) {
            Some(end) if rest[end] == self.dialect.delimiter => {
                self.at = Some(at + end + 1);
                &rest[..end]
            }
            end => {
                let last = &rest[..end.unwrap_or(rest.len())];
                last.strip_suffix(b"\r").unwrap_or(last)
            }
        }
    }

    fn quoted(&mut self, at: usize) -> Result<Field<'a>, Unclosed> {
        let quote = self.record[at];
        let (mut bytes, mut from) = (Cow::Borrowed(&self.record[..0]), at + 1);
        loop {
            let rest = &self.record[from..];
            let end = memchr(quote, rest).ok_or(Unclosed(at))?;
            let doubled = rest.get(end + 1) == Some(&quote);
            // A doubled quote contributes one quote.
            append(&mut bytes, &rest[..end + usize::from(doubled)], rest.len());
            from += end + 1 + usize::from(doubled);
            if !doubled {
                break;
            }
        }
        append(&mut bytes, self.plain(from), 0);
        Ok(Field { at, bytes, quoted: true })
    }
}

/// Maximum extra capacity for the rest of a field, in bytes.
const SHORT: usize = 256;

/// Appends a part of a field. Borrows the first part, and copies if more parts follow. At most `left` bytes may follow.
fn append<'a>(bytes: &mut Cow<'a, [u8]>, more: &'a [u8], left: usize) {
    match bytes {
        Cow::Borrowed([]) => *bytes = Cow::Borrowed(more),
        Cow::Borrowed(first) if !more.is_empty() => {
            let mut owned = Vec::with_capacity(first.len() + more.len() + left.min(SHORT));
            owned.extend_from_slice(first);
            owned.extend_from_slice(more);
            *bytes = Cow::Owned(owned);
        }
        Cow::Borrowed(_) => {}
        Cow::Owned(bytes) => bytes.extend_from_slice(more),
    }
}

/// Returns the offset of the first delimiter or line end.
#[inline]
fn end_of_field(delimiter: u8, rest: &[u8]) -> Option<usize> {
    /// Number of bytes that are searched one by one. A search for long texts takes about as long to start.
    const NEAR: usize = 16;
    let (short, long) = rest.split_at(rest.len().min(NEAR));
    let near = short.iter().position(|&byte| byte == delimiter || byte == b'\n');
    near.or_else(|| memchr2(delimiter, b'\n', long).map(|end| short.len() + end))
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMAS: Dialect = Dialect { delimiter: b',', quote: Some(b'"') };

    fn split(record: &[u8]) -> Vec<Vec<u8>> {
        COMMAS.fields(record).map(|field| field.unwrap().bytes.into_owned()).collect()
    }

    #[test]
    fn fields_with_and_without_quotes() {
        assert_eq!(split(b"a,b,\r\n"), [b"a".as_slice(), b"b", b""]);
        assert_eq!(split(b"\"a,\n\"\"b\"\"\",\"\"\n"), [b"a,\n\"b\"".as_slice(), b""]);
        assert_eq!(split(b"a\"b\",\"c\"d\"e,\"\"\"\""), [b"a\"b\"".as_slice(), b"cd\"e", b"\""]);
        assert_eq!(COMMAS.fields(b"a,\"b").nth(1), Some(Err(Unclosed(2))));
        let places: Vec<_> = COMMAS.fields(b"a,\"b\",c").map(|f| f.map(|f| (f.at, f.quoted)).unwrap()).collect();
        assert_eq!(places, [(0, false), (2, true), (6, false)]);
        let plain = Dialect { quote: None, ..COMMAS };
        assert_eq!(plain.fields(b"\"a,b").count(), 2);
    }

    #[test]
    fn delimiters_are_guessed() {
        let guess = |text: &str| Dialect::guess(text.as_bytes(), false, 2).map(char::from);
        assert_eq!(guess("a,b\n1,2\n"), Some(','));
        assert_eq!(guess("a\tb,c\n1\t2,5\n"), Some(','));
        assert_eq!(guess("a;b;c\n1,5;2;3\n"), Some(';'));
        assert_eq!(guess("\"a,b\"|\"c\nd\"\n1|2\n"), Some('|'));
        assert_eq!(guess("one, two\nthree\n"), None);
        assert_eq!(guess("a,b\n"), None);
        assert_eq!(guess(""), None);
        assert_eq!(Dialect::guess(b"a,b\n1,2\n3", true, 2), Some(b','));
    }
}
