//! Files of token ids: bare `.bin`, llm.c's `.bin`, and `.npy`.

#[cfg(feature = "spec")]
pub(super) mod entry;
#[cfg(all(any(test, fuzzing), feature = "compress"))]
pub(super) mod fuzz;

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use super::abreast;
use super::content::{self, Content};
use super::files::{FileId, Patterns, Renamed, identity};
use super::formats::Format;
use super::megatron;
use super::npy::{Header, MAGIC, aligned};
use crate::element::{Array, DType};
use crate::error::{Error, Result};
use crate::mmap::{Access, prefetch};
use crate::place::Location;

/// Width of a stored token id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenType {
    /// Two bytes: vocabularies up to 65,536, such as GPT-2's.
    U16,
    /// Four bytes. Reading an id above `i32::MAX` is an error.
    U32,
}

impl TokenType {
    /// Returns the size of an id in bytes.
    pub const fn size(self) -> usize {
        match self {
            Self::U16 => 2,
            Self::U32 => 4,
        }
    }

    /// Returns the corresponding type of an array.
    pub const fn dtype(self) -> DType {
        match self {
            Self::U16 => DType::U16,
            Self::U32 => DType::U32,
        }
    }
}

/// Layout of a `.bin` file. A `.npy` file describes its own layout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum TokenLayout {
    /// llm.c's header, if present. A file without a header is rejected, because its content does not reveal the width.
    #[default]
    Detect,
    /// llm.c's header, if present; otherwise bare little-endian ids of this type, as in nanoGPT.
    Bare(TokenType),
    /// llm.c's header of 256 `i32`: magic 20240520, version 1, count, then `u16`; or magic 20240801, version 7, then
    /// `u32`.
    LlmC,
}

impl TokenLayout {
    /// The layouts, by their names in pipeline files and on the command line.
    pub const NAMES: [(&str, Self); 4] = [
        ("detect", Self::Detect),
        ("llm_c", Self::LlmC),
        ("u16", Self::Bare(TokenType::U16)),
        ("u32", Self::Bare(TokenType::U32)),
    ];
}

/// Pre-tokenised files: consecutive ids in one or many mapped files. From files in stores, only the ids of a crop are
/// read.
///
/// The ids of a file form a single long text, without records. [`crops`](Self::crops) cuts the text into consecutive
/// crops, [`random_crops`](Self::random_crops) cuts at random positions. No crop extends into the next file.
///
/// ```
/// use gristmill::source::{TokenLayout, TokenType, Tokens};
/// use gristmill::prelude::*;
/// # let dir = std::env::temp_dir().join(format!("gristmill-doc-tokens-{}", std::process::id()));
/// # std::fs::create_dir_all(&dir).unwrap();
/// # let path = dir.join("train.bin");
/// std::fs::write(&path, [1, 0, 2, 0, 3, 0, 4, 0, 5, 0]).unwrap();
/// let tokens = Tokens::open(&path, TokenLayout::Bare(TokenType::U16))?;
/// let first = &tokens.crops(2).with_next(true).collect()?[0];
/// assert_eq!(first.array("tokens")?.as_slice::<i32>()?, [1, 2, 3]);
/// # std::fs::remove_dir_all(&dir).unwrap();
/// # Ok::<(), gristmill::Error>(())
/// ```
#[derive(Clone)]
pub struct Tokens {
    pub(super) files: Arc<[TokenFile]>,
    pub(super) identity: Arc<str>,
}

/// The ids of a single file.
pub(super) struct TokenFile {
    path: PathBuf,
    pub(super) content: Content,
    /// Offset of the first id in the file.
    start: usize,
    coding: Coding,
}

/// Stored type of an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    U16,
    U16Big,
    U32,
    U32Big,
}

impl Coding {
    fn of(dtype: DType, big_endian: bool) -> Result<Self> {
        Ok(match (dtype, big_endian) {
            (DType::U16, false) => Self::U16,
            (DType::U16, true) => Self::U16Big,
            (DType::U32 | DType::I32, false) => Self::U32,
            (DType::U32 | DType::I32, true) => Self::U32Big,
            (other, _) => {
                return Err(Error::unsupported(format!(
                    "token ids of type {other}, uint16, uint32 and int32 are read"
                )));
            }
        })
    }

    fn size(self) -> usize {
        match self {
            Self::U16 | Self::U16Big => 2,
            Self::U32 | Self::U32Big => 4,
        }
    }
}

impl From<TokenType> for Coding {
    fn from(token: TokenType) -> Self {
        match token {
            TokenType::U16 => Self::U16,
            TokenType::U32 => Self::U32,
        }
    }
}

impl Tokens {
    /// Opens files, globs or directories (of `.bin` and `.npy` files). `layout` applies to the `.bin` files.
    /// [`TokenLayout::Detect`] also uses a Megatron index beside a file, and joins its sequences into one text.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) if a header or a size is invalid;
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if `layout` does not determine the type of the ids.
    pub fn open(patterns: impl Patterns, layout: TokenLayout) -> Result<Self> {
        let names = patterns.patterns().iter().map(|path| megatron::ids_of(path)).collect();
        let named = Renamed { names, given: patterns };
        let contents =
            content::open_all(named, &[Format::Tokens.endings(), Format::Npy.endings()].concat(), Access::Normal)?;
        let open = |(file, content): (Location, _)| TokenFile::open(file.into_path(), content, layout);
        let opened = abreast::try_each(contents, open)?;
        let (files, ids): (Vec<_>, Vec<_>) = opened.into_iter().unzip();
        let codings: Vec<String> = files.iter().map(|f| format!("{:?}@{}", f.coding, f.start)).collect();
        let same = codings.iter().all(|c| *c == codings[0]);
        let coding = if same { codings[0].clone() } else { codings.join(" ") };
        let identity = format!("{}, ids={coding}", identity(&ids)).into();
        Ok(Self { files: files.into(), identity })
    }

    /// Returns the number of ids in all files.
    pub fn len(&self) -> u64 {
        self.files.iter().map(TokenFile::len).sum()
    }

    /// Returns true if there are no ids.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the ids of each file as an array, `u16` or `u32` as stored. The array is a view of the mapping. Files in
    /// stores are read whole.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for a big-endian file, which an array cannot view.
    pub fn views(&self) -> Result<Vec<Array>> {
        self.files.iter().map(|file| file.view(0, file.len())).collect()
    }
}

debug_as!(Tokens, |self, f| write!(f, "Tokens({} ids in {} files)", self.len(), self.files.len()));

impl TokenFile {
    fn open(path: PathBuf, content: Content, layout: TokenLayout) -> Result<(Self, FileId)> {
        let id = content.id(&path);
        let size = usize::try_from(content.len()).unwrap_or(usize::MAX);
        let head = content.read(0..content.len().min(HEAD)).map_err(|e| e.path(&path))?;
        let head = File { head: content.here().unwrap_or(head.as_bytes()), size };
        let named = path.extension().is_some_and(|ext| ext.eq_ignore_ascii_case("npy"));
        // An explicit layout takes precedence over the name.
        let npy = named && (layout == TokenLayout::Detect || head.head.starts_with(MAGIC));
        let stored = (layout == TokenLayout::Detect && !npy).then(|| megatron::stored_type(&path)).flatten();
        let (start, coding) = match stored {
            Some(dtype) => dtype.and_then(|dtype| whole(size, Coding::of(dtype, false)?)),
            None if npy => npy_layout(head),
            None => layout_of(head, layout),
        }
        .map_err(|e| e.path(&path))?;
        Ok((Self { path, content, start, coding }, id))
    }

    /// Opens the ids of a Megatron data set, whose index states their type.
    pub(super) fn of_type(path: PathBuf, content: Content, dtype: DType) -> Result<Self> {
        let size = usize::try_from(content.len()).unwrap_or(usize::MAX);
        let (start, coding) =
            Coding::of(dtype, false).and_then(|coding| whole(size, coding)).map_err(|e| e.path(&path))?;
        Ok(Self { path, content, start, coding })
    }

    pub(super) fn len(&self) -> u64 {
        (self.content.len() - self.start as u64) / self.coding.size() as u64
    }

    /// Returns the byte range of ids in the file.
    pub(super) fn place(&self, from: u64, count: usize) -> Result<Range<u64>> {
        let end = from.checked_add(count as u64).filter(|&end| end <= self.len());
        let end = end.ok_or_else(|| {
            Error::data(format!("{count} ids from number {from} on are out of range: the file has {}", self.len()))
                .path(&self.path)
        })?;
        let at = |id| self.start as u64 + id * self.coding.size() as u64;
        Ok(at(from)..at(end))
    }

    /// Returns the bytes of ids if the file is mapped.
    #[inline]
    pub(super) fn here(&self, from: u64, count: usize) -> Option<&[u8]> {
        let (all, size) = (self.content.here()?, self.coding.size());
        let start = usize::try_from(from).ok()?.checked_mul(size)?.checked_add(self.start)?;
        all.get(start..)?.get(..count.checked_mul(size)?)
    }

    /// Prefetches ids that will be read soon into the processor's cache.
    #[inline]
    pub(super) fn prefetch(&self, from: u64, count: usize) {
        prefetch(self.here(from, count).unwrap_or_default());
    }

    /// Loads only the pages of these ids into memory, if the file is mapped.
    pub(super) fn bring(&self, from: u64, count: usize) {
        if let Ok(place) = self.place(from, count) {
            self.content.bring(place);
        }
    }

    /// Returns the byte range of ids if the file is remote.
    pub(super) fn far(&self, from: u64, count: usize) -> Option<Range<u64>> {
        let is_far = self.content.here().is_none();
        is_far.then(|| self.place(from, count).ok()).flatten()
    }

    /// Reads ids from `from` on, until `out` is full.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) with the byte offset of an id above `i32::MAX`.
    pub(super) fn read_into(&self, from: u64, out: &mut [i32]) -> Result<()> {
        if let Some(bytes) = self.here(from, out.len()) {
            return self.widen(from, bytes, out);
        }
        let far = self.content.read(self.place(from, out.len())?).map_err(|e| e.path(&self.path))?;
        self.widen(from, far.as_bytes(), out)
    }

    /// Converts the stored `bytes` of the ids from `from` on.
    ///
    /// # Errors
    /// The errors of [`read_into`](Self::read_into).
    #[inline]
    pub(super) fn widen(&self, from: u64, bytes: &[u8], out: &mut [i32]) -> Result<()> {
        match self.coding {
            Coding::U16 => widen(bytes, out, |b| u16::from_le_bytes(b).into()),
            Coding::U16Big => widen(bytes, out, |b| u16::from_be_bytes(b).into()),
            Coding::U32 => widen(bytes, out, i32::from_le_bytes),
            Coding::U32Big => widen(bytes, out, i32::from_be_bytes),
        }
        if self.coding.size() == 4 && out.iter().fold(0, |all, &id| all | id) < 0 {
            return Err(self.too_large(from, out));
        }
        Ok(())
    }

    #[cold]
    fn too_large(&self, from: u64, out: &[i32]) -> Error {
        let at = out.iter().position(|&id| id < 0).unwrap_or(0);
        let offset = self.start as u64 + (from + at as u64) * 4;
        let text = format!("id {} is above {}", out.get(at).map_or(0, |&id| id as u32), i32::MAX);
        Error::data(text).path(&self.path).offset(offset)
    }

    /// Returns ids from `from` on as stored. Mapped ids are not copied.
    pub(super) fn view(&self, from: u64, count: u64) -> Result<Array> {
        let dtype = match self.coding {
            Coding::U16 => DType::U16,
            Coding::U32 => DType::U32,
            Coding::U16Big | Coding::U32Big => {
                return Err(Error::unsupported("big-endian ids cannot be viewed without a copy").path(&self.path));
            }
        };
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let data = self.content.read(self.place(from, count)?).map_err(|e| e.path(&self.path))?;
        let array = Array::new(dtype, &[count], data)?;
        // Remote bytes may be unaligned.
        if self.content.here().is_some() { Ok(array) } else { aligned(array) }
    }
}

/// Converts stored ids to `i32`, in a loop that the compiler vectorises.
#[inline]
fn widen<const N: usize>(bytes: &[u8], out: &mut [i32], id: impl Fn([u8; N]) -> i32) {
    let (ids, _) = bytes.as_chunks::<N>();
    out.iter_mut().zip(ids).for_each(|(out, &bytes)| *out = id(bytes));
}

/// The beginning of a file, and the size of the whole file.
#[derive(Clone, Copy)]
struct File<'a> {
    head: &'a [u8],
    size: usize,
}

/// Number of bytes read from a remote file to find its layout. NumPy's header of a list of numbers takes 128 bytes.
const HEAD: u64 = 64 << 10;

fn npy_layout(file: File<'_>) -> Result<(usize, Coding)> {
    let header = Header::of(file.head, file.size)?;
    let coding = Coding::of(header.dtype, header.big_endian)?;
    match header.shape.as_slice() {
        [_] => Ok((header.start, coding)),
        shape => {
            Err(Error::unsupported(format!("token ids have shape {shape:?}, and only one dimension is supported")))
        }
    }
}

const LLMC_HEADER: usize = 1024;

/// Returns the layout of a file that is entirely in memory.
#[cfg(any(test, fuzzing))]
pub(super) fn bin_layout(file: &[u8], layout: TokenLayout) -> Result<(usize, Coding)> {
    layout_of(File { head: file, size: file.len() }, layout)
}

fn layout_of(file: File<'_>, layout: TokenLayout) -> Result<(usize, Coding)> {
    let magic = file.head.get(..4).map(|b| i32::from_le_bytes([b[0], b[1], b[2], b[3]]));
    match (layout, magic) {
        (_, Some(20_240_520)) => llmc(file, 1, TokenType::U16),
        (_, Some(20_240_801)) => llmc(file, 7, TokenType::U32),
        (TokenLayout::LlmC, Some(other)) => {
            Err(Error::data(format!("magic {other}, llm.c's are 20240520 and 20240801")).offset(0))
        }
        (TokenLayout::LlmC, None) => {
            Err(Error::data(format!("{} bytes, but the header of llm.c has 1024", file.size)).offset(0))
        }
        (TokenLayout::Detect, _) => Err(Error::config("nothing in a bare file of ids says how wide they are")
            .help("name it: layout u16 (GPT-2's vocabulary, as in nanoGPT) or u32; --layout on the command line")),
        (TokenLayout::Bare(token), _) => bare(file, token),
    }
}

/// Checks that `size` bytes without a header consist of whole ids.
fn whole(size: usize, coding: Coding) -> Result<(usize, Coding)> {
    let over = size % coding.size();
    if over != 0 {
        let text = format!("{size} bytes are not a whole number of {}-byte ids", coding.size());
        return Err(Error::data(text).offset((size - over) as u64));
    }
    Ok((0, coding))
}

fn bare(file: File<'_>, token: TokenType) -> Result<(usize, Coding)> {
    let found = whole(file.size, token.into())?;
    // The header is empty except for a count that fits the file: llm.c's layout with another magic number.
    let empty = file.head.get(12..LLMC_HEADER).is_some_and(|rest| rest.iter().all(|&b| b == 0));
    let count = file.head.get(8..12).map_or(0, |b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]) as usize);
    if empty && count > 0 && [2, 4].iter().any(|size| count.checked_mul(*size) == Some(file.size - LLMC_HEADER)) {
        return Err(
            Error::data("the file has the layout of llm.c, but its magic number is not 20240520 or 20240801").offset(0)
        );
    }
    Ok(found)
}

fn llmc(file: File<'_>, version: i32, token: TokenType) -> Result<(usize, Coding)> {
    if file.size < LLMC_HEADER {
        let text = format!("the file ends inside llm.c's header of {LLMC_HEADER} bytes, after {}", file.size);
        return Err(Error::data(text).offset(file.size as u64));
    }
    let word = |at: usize| i32::from_le_bytes([file.head[at], file.head[at + 1], file.head[at + 2], file.head[at + 3]]);
    if word(4) != version {
        return Err(Error::data(format!("version {} of llm.c's header, {version} is known", word(4))).offset(4));
    }
    let ids = file.size - LLMC_HEADER;
    let need = usize::try_from(word(8)).ok().and_then(|count| count.checked_mul(token.size()));
    if need != Some(ids) {
        let text = format!("the header says {} ids of {} bytes, {ids} bytes follow", word(8), token.size());
        return Err(Error::data(text).offset(8));
    }
    Ok((LLMC_HEADER, token.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::Buffer;

    fn llmc_file(count: i32, tail: &[u8]) -> Vec<u8> {
        let mut file = vec![0; LLMC_HEADER];
        for (i, word) in [20_240_520, 1, count].iter().enumerate() {
            file[i * 4..i * 4 + 4].copy_from_slice(&i32::to_le_bytes(*word));
        }
        file.extend_from_slice(tail);
        file
    }

    #[test]
    fn layouts() {
        let u16s = TokenLayout::Bare(TokenType::U16);
        assert_eq!(bin_layout(&[1, 0, 2, 0], u16s).unwrap(), (0, Coding::U16));
        assert_eq!(bin_layout(&[], u16s).unwrap(), (0, Coding::U16));
        assert!(bin_layout(&[1, 0, 2], u16s).is_err());
        assert_eq!(bin_layout(&[1, 0, 2], TokenLayout::Detect).unwrap_err().kind(), crate::ErrorKind::Config);
        let good = llmc_file(2, &[1, 0, 2, 0]);
        for layout in [u16s, TokenLayout::Detect, TokenLayout::LlmC] {
            assert_eq!(bin_layout(&good, layout).unwrap(), (LLMC_HEADER, Coding::U16));
            for bad in [llmc_file(3, &[1, 0, 2, 0]), llmc_file(-2, &[1, 0]), good[..1023].to_vec()] {
                assert!(bin_layout(&bad, layout).is_err());
            }
            let mut magic = good.clone();
            magic[0] ^= 1;
            assert!(bin_layout(&magic, layout).is_err());
        }
    }

    #[test]
    fn a_layout_counts_for_more_than_the_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("bare.npy");
        std::fs::write(&path, [1, 0, 2, 0]).unwrap();
        let open = |layout| Tokens::open(&path, layout).map(|tokens| tokens.len());
        assert_eq!(open(TokenLayout::Bare(TokenType::U16)).unwrap(), 2);
        assert!(open(TokenLayout::Detect).unwrap_err().message().contains("not an npy file"));
    }

    #[test]
    fn every_coding_is_widened_and_large_ids_are_refused() {
        let file = |coding, ids: &[u8]| {
            let file = Buffer::copy_from(&[&[0; 8], ids].concat());
            TokenFile { path: "x.bin".into(), content: file.into(), start: 8, coding }
        };
        let read = |file: &TokenFile| {
            let mut out = [0; 2];
            file.read_into(1, &mut out).map(|()| out)
        };
        assert_eq!(read(&file(Coding::U16, &[9, 9, 0xff, 0xff, 2, 0])).unwrap(), [0xffff, 2]);
        assert_eq!(read(&file(Coding::U16Big, &[9, 9, 0xff, 0xff, 0, 2])).unwrap(), [0xffff, 2]);
        assert_eq!(read(&file(Coding::U32, &[9, 9, 9, 9, 1, 0, 0, 0, 2, 1, 0, 0])).unwrap(), [1, 258]);
        assert_eq!(read(&file(Coding::U32Big, &[9, 9, 9, 9, 0, 0, 0, 1, 0, 0, 1, 2])).unwrap(), [1, 258]);
        let error = read(&file(Coding::U32, &[9, 9, 9, 9, 1, 0, 0, 0, 2, 0, 0, 0x80])).unwrap_err();
        assert_eq!(error.to_string(), "x.bin: byte 16: id 2147483650 is above 2147483647");
        assert!(read(&file(Coding::U16, &[9, 9, 1, 1])).is_err());
    }
}
