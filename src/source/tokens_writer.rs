//! Writer of token id files.

use std::io::Write;

use super::tokens::TokenType;
use crate::element::{Array, Element};
use crate::error::{Error, Result};

/// Writes the ids of elements consecutively, with llm.c's header, or bare as in nanoGPT.
///
/// ```
/// use gristmill::source::{TokenType, TokensWriter};
/// use gristmill::{Array, Element};
/// let mut writer = TokensWriter::bare(Vec::new(), TokenType::U16);
/// writer.write(&Element::new().with("tokens", Array::from_vec(vec![1i32, 512])))?;
/// assert_eq!(writer.finish()?, [1, 0, 0, 2]);
/// # Ok::<(), gristmill::Error>(())
/// ```
///
/// # Cost
/// The header contains the number of ids. If there is a header, all ids are therefore held until the end.
#[must_use = "what is not finished may not be written"]
pub struct TokensWriter<W> {
    out: W,
    column: String,
    token: TokenType,
    has_header: bool,
    /// Ids that are not written yet, as stored.
    bytes: Vec<u8>,
}

/// Magic number and version in llm.c's headers.
const U16_HEADER: [i32; 2] = [20_240_520, 1];
const U32_HEADER: [i32; 2] = [20_240_801, 7];
/// Number of `i32` in the header.
const HEADER: usize = 256;

impl<W: Write> TokensWriter<W> {
    /// Creates a writer of llm.c's header, followed by the ids.
    pub fn llm_c(out: W, token: TokenType) -> Self {
        Self { out, column: "tokens".to_owned(), token, has_header: true, bytes: Vec::new() }
    }

    /// Creates a writer of ids without a header.
    pub fn bare(out: W, token: TokenType) -> Self {
        Self { has_header: false, ..Self::llm_c(out, token) }
    }

    /// Sets the column of the ids. Default: `tokens`.
    pub fn column(mut self, column: impl Into<String>) -> Self {
        self.column = column.into();
        self
    }

    /// Writes the ids of an element: integers of any type and shape.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) if the column is missing, or if an id does not fit the type;
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if writing fails.
    pub fn write(&mut self, element: &Element) -> Result<()> {
        let ids = element.array(&self.column)?;
        if !self.has_header {
            self.bytes.clear();
        }
        append(&mut self.bytes, ids, self.token)?;
        if self.has_header { Ok(()) } else { self.out.write_all(&self.bytes).map_err(Error::of_io) }
    }

    /// Writes the remaining bytes, and returns the output.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) if there are more ids than the header can count;
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if writing fails.
    pub fn finish(mut self) -> Result<W> {
        if self.has_header {
            let header = self.header()?;
            self.out.write_all(&header).and_then(|()| self.out.write_all(&self.bytes)).map_err(Error::of_io)?;
        }
        self.out.flush().map_err(Error::of_io)?;
        Ok(self.out)
    }

    fn header(&self) -> Result<Vec<u8>> {
        let ids = self.bytes.len() / self.token.size();
        let count = i32::try_from(ids).map_err(|_| {
            Error::data(format!("{ids} ids in one file, and the header counts {} at most", i32::MAX))
                .help("make smaller shards")
        })?;
        let [magic, version] = match self.token {
            TokenType::U16 => U16_HEADER,
            TokenType::U32 => U32_HEADER,
        };
        let numbers = [magic, version, count].into_iter().chain(std::iter::repeat(0)).take(HEADER);
        Ok(numbers.flat_map(i32::to_le_bytes).collect())
    }
}

/// Appends ids in their stored type.
fn append(out: &mut Vec<u8>, ids: &Array, token: TokenType) -> Result<()> {
    if ids.dtype() == token.dtype() {
        out.extend_from_slice(ids.bytes());
        return Ok(());
    }
    let read =
        ids.dtype().whole_reader().ok_or_else(|| Error::data(format!("token ids are whole numbers, got {ids:?}")))?;
    out.reserve(ids.size() * token.size());
    for bytes in ids.bytes().chunks_exact(ids.dtype().size()) {
        let id = read(bytes);
        match token {
            TokenType::U16 => out.extend_from_slice(&fits::<u16>(id, token)?.to_le_bytes()),
            TokenType::U32 => out.extend_from_slice(&fits::<u32>(id, token)?.to_le_bytes()),
        }
    }
    Ok(())
}

fn fits<T: TryFrom<i128>>(id: i128, token: TokenType) -> Result<T> {
    T::try_from(id).map_err(|_| Error::data(format!("the id {id} does not fit {}", token.dtype())))
}

debug_as!(<W> TokensWriter<W>, |self, f| write!(f, "TokensWriter({})", self.token.dtype()));

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::MapDatasetExt;
    use crate::source::{TokenLayout, Tokens};

    proptest! {
        #[test]
        fn what_is_written_is_read(ids in prop::collection::vec(prop::collection::vec(0..60_000u32, 0..9), 0..5), wide: bool, bare: bool) {
            let token = if wide { TokenType::U32 } else { TokenType::U16 };
            let temp = tempfile::tempdir().unwrap();
            let path = temp.path().join("a.bin");
            let out = std::fs::File::create(&path).unwrap();
            let mut writer = if bare { TokensWriter::bare(out, token) } else { TokensWriter::llm_c(out, token) };
            for ids in &ids {
                writer.write(&Element::new().with("tokens", Array::from_vec(ids.clone()))).unwrap();
            }
            writer.finish().unwrap();
            let layout = if bare { TokenLayout::Bare(token) } else { TokenLayout::Detect };
            let tokens = Tokens::open(&path, layout).unwrap();
            let all: Vec<i32> = ids.concat().into_iter().map(|id| id as i32).collect();
            prop_assert_eq!(tokens.len(), all.len() as u64);
            if !all.is_empty() {
                let crops = tokens.crops(all.len()).collect().unwrap();
                prop_assert_eq!(crops[0].array("tokens").unwrap().as_slice::<i32>().unwrap(), &all);
            }
        }
    }

    #[test]
    fn what_is_no_id_is_refused() {
        let mut writer = TokensWriter::bare(Vec::new(), TokenType::U16);
        let mut message =
            |ids: Array| writer.write(&Element::new().with("tokens", ids)).unwrap_err().message().to_owned();
        assert_eq!(message(Array::from_vec(vec![70_000u32])), "the id 70000 does not fit uint16");
        assert_eq!(message(Array::scalar(-1i64)), "the id -1 does not fit uint16");
        assert_eq!(message(Array::scalar(1f32)), "token ids are whole numbers, got float32[]");
    }
}
