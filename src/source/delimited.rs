//! Text of fields: how records are framed and split, quotes respected. Known without the feature `csv`, to tell such files.
//!
//! As RFC 4180 has it, and where that is silent as the `csv` crate and Python's `csv` do: a quote within a field that does not
//! begin with one is a character like any other, and so is what follows the closing quote of one that does.
//!
//! `csv-core` 0.1.13 does not split here. It says of no field where it begins, whether it was quoted and whether its quote is closed, which
//! errors and nulls need, and it copies every byte through its table, where a field here is a view of the record. Nanoseconds a record of
//! both in one run, `csv-core` with one reader and one buffer for all records: 28 and 37 here for `1,2.5,name 1,"oat, or ""rye"" 1"`, 16
//! and 10 for four numbers, 152 and 87 for 40 short fields, 98 and 14 for 240 bytes of text, 109 and 17 where they are quoted. Of the 160
//! ns that an element out of the first of these takes, that would be 9.
#![cfg_attr(not(feature = "csv"), allow(dead_code, reason = "only recognised"))]

use std::borrow::Cow;

use memchr::{memchr, memchr2};

/// Characters that stand between fields, and around those that hold them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dialect {
    pub(crate) delimiter: u8,
    pub(crate) quote: Option<u8>,
}

/// A field of a record.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Field<'a> {
    /// Place where it begins in the record, its quote included.
    pub(crate) at: usize,
    /// Without quotes.
    pub(crate) bytes: Cow<'a, [u8]>,
    pub(crate) quoted: bool,
}

/// A quote that is not closed, and where it opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unclosed(pub(crate) usize);

impl Dialect {
    /// Delimiters that are guessed, the likeliest first.
    const GUESSED: [u8; 4] = *b",\t;|";
    /// Records that are looked at for a guess.
    const LOOKED_AT: usize = 32;

    /// Whether the text goes on within quotes behind `line`, a whole line, if `inside` says so for its beginning.
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

    /// Finds where each record begins in `text`, and calls `found` with it. Lines that are empty are none.
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

    /// The fields of a record, which ends with a line end outside of quotes or with the bytes.
    pub(crate) fn fields(self, record: &[u8]) -> Fields<'_> {
        Fields { dialect: self, record, at: Some(0) }
    }

    /// The delimiter of a text that begins so: the one by which all records seen have the same number of fields, two or more, and
    /// the most of those. Of a beginning that is cut the last line is not looked at.
    pub(crate) fn guess(head: &[u8], is_cut: bool, least_records: usize) -> Option<u8> {
        let whole = if is_cut { memchr::memrchr(b'\n', head).map_or(0, |end| end + 1) } else { head.len() };
        let text = head[..whole].strip_prefix(b"\xef\xbb\xbf").unwrap_or(&head[..whole]);
        let fields = |delimiter| Self { delimiter, quote: Some(b'"') }.equal_fields(text, least_records);
        let counted = Self::GUESSED.into_iter().rev().filter_map(|delimiter| Some((fields(delimiter)?, delimiter)));
        counted.max_by_key(|(fields, _)| *fields).map(|(_, delimiter)| delimiter)
    }

    /// Fields of each of the first records, if they have as many, two or more.
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

/// See [`Dialect::fields`].
#[derive(Clone, Debug)]
pub(crate) struct Fields<'a> {
    dialect: Dialect,
    record: &'a [u8],
    /// Place where the next field begins, if there is one.
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
    /// Up to the next delimiter or the end, behind which the next field begins.
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
            // Of a doubled quote one stays.
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

/// Room that is made for what may still come of a field.
const SHORT: usize = 256;

/// Borrows the first part, copies where there are more; `left` bytes may still come.
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

/// Finds the delimiter or the end of the line.
#[inline]
fn end_of_field(delimiter: u8, rest: &[u8]) -> Option<usize> {
    /// A search that is made for long texts takes as long to begin.
    const NEAR: usize = 16;
    let (short, long) = rest.split_at(rest.len().min(NEAR));
    let near = short.iter().position(|&byte| byte == delimiter || byte == b'\n');
    near.or_else(|| memchr2(delimiter, b'\n', long).map(|end| short.len() + end))
}

#[cfg(test)]
mod tests {
    #[cfg(feature = "csv")]
    use proptest::prelude::*;

    use super::*;

    const COMMAS: Dialect = Dialect { delimiter: b',', quote: Some(b'"') };

    fn split(record: &[u8]) -> Vec<Vec<u8>> {
        COMMAS.fields(record).map(|field| field.unwrap().bytes.into_owned()).collect()
    }

    /// Reads as the `csv` crate does.
    #[cfg(feature = "csv")]
    fn theirs(text: &[u8]) -> Vec<Vec<Vec<u8>>> {
        let mut builder = csv::ReaderBuilder::new();
        builder.has_headers(false).flexible(true).terminator(csv::Terminator::Any(b'\n'));
        let records = builder.from_reader(text).into_byte_records();
        records.map(|record| record.unwrap().iter().map(<[u8]>::to_vec).collect()).collect()
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

    #[cfg(feature = "csv")]
    proptest! {
        /// Records and fields are those that the `csv` crate finds, but for a quote that is left open.
        #[test]
        fn as_the_csv_crate_has_it(text in "[ab,\"\n]{0,40}") {
            let text = text.as_bytes();
            let mut starts = Vec::new();
            COMMAS.each_record(text, |at| starts.push(at));
            let ends = starts.iter().skip(1).copied().chain([text.len()]);
            let ours: Vec<Result<Vec<_>, _>> = starts.iter().zip(ends)
                .map(|(&start, end)| COMMAS.fields(&text[start..end]).map(|f| f.map(|f| f.bytes.into_owned())).collect())
                .collect();
            let theirs = theirs(text);
            prop_assert_eq!(ours.len(), theirs.len());
            for (ours, theirs) in ours.iter().zip(theirs) {
                if let Ok(ours) = ours {
                    prop_assert_eq!(ours, &theirs);
                }
            }
        }
    }
}
