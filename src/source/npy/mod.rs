//! NumPy arrays: `.npy` files.

#[cfg(feature = "spec")]
pub(super) mod entry;
#[cfg(all(any(test, fuzzing), feature = "compress"))]
pub(super) mod fuzz;
mod header;
mod stored;
mod writer;

use std::ops::Range;

pub(crate) use self::header::Header;
pub(super) use self::header::MAGIC;
use self::stored::Stored;
pub use self::writer::{NpyWriter, NpyWriterOptions};
use super::content;
use super::files::{self, Patterns};
use super::formats::Format;
use super::numbered::{File, Files, Numbered, named_source, reader};
use crate::dataset::iter::InPlace;
use crate::dataset::map::GetStacked;
use crate::element::{Array, Buffer, Element, Name};
use crate::error::{Error, Result};
use crate::mmap::Access;

/// Rows of `.npy` files along the first dimension: a [`RandomAccess`](crate::dataset::map::RandomAccess) source of
/// [`Element`].
///
/// Record `i` is an element with a single field, `data`. The field is row `i` of all files concatenated, an array
/// without the first dimension. A scalar is one record.
///
/// Rows are views of the mapped files. Rows of files in stores are read individually. An array that is big-endian or in
/// Fortran order is read whole on opening and converted to a row-major, little-endian copy.
///
/// Versions 1 to 3 and plain types (`bool`, integers, floats) are supported. Object arrays are pickles and are
/// rejected.
pub struct Npy(Files<Rows>);

impl Npy {
    /// Opens files, globs or directories of `.npy` files.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) with the byte offset for damage, or for a file whose rows differ in
    /// shape or type from the first file's. [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for other types.
    pub fn open(patterns: impl Patterns) -> Result<Self> {
        let contents = content::open_all(patterns, Format::Npy.endings(), Access::Normal)?;
        let format = Rows { field: Name::new("data") };
        let files = Files::open(format, contents, |_, file| Stored::open(&mut file.content))?;
        check_equal(&files.files)?;
        Ok(Self(files))
    }

    /// Sets the name of the elements' field. Default: `data`.
    #[must_use]
    pub fn field(mut self, name: impl AsRef<str>) -> Self {
        self.0.format.field = Name::new(name.as_ref());
        self
    }

    /// Returns the whole array of the first file.
    ///
    /// # Errors
    /// The errors of [`arrays`](Self::arrays).
    pub fn array(&self) -> Result<Array> {
        // A source always has at least one file.
        let first = &self.0.files[0];
        first.index.whole(&first.content)
    }

    /// Returns the whole array of each file.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if a file in a store cannot be read.
    pub fn arrays(&self) -> Result<Vec<Array>> {
        self.0.files.iter().map(|file| file.index.whole(&file.content)).collect()
    }

    fn row(&self, index: u64) -> Result<Array> {
        let (at, row) = self.0.find(index)?;
        let file = &self.0.files[at];
        file.index.row(&file.content, row)
    }

    /// Copies rows from the files into a batch.
    fn stacked(&self, indices: &[u64]) -> GetStacked<Element> {
        self.0.fetch(indices);
        let first = self.row(*indices.first()?).ok()?;
        let mut batch = Array::of_rows(first.dtype(), &[&[indices.len()], first.shape()].concat()).ok()?;
        for &index in indices {
            batch.push(self.row(index).ok()?.bytes())?;
        }
        let batch = Element::from_unique(vec![(self.0.format.field.clone(), batch.freeze().into())]);
        Some(InPlace { len: indices.len(), bytes: batch.nbytes(), batch })
    }
}

/// Checks that the rows of all arrays have equal types and shapes.
fn check_equal(files: &[File<Stored>]) -> Result<()> {
    let Some((first, others)) = files.split_first() else { return Ok(()) };
    for file in others {
        let (first, array, of) = (&first.index, &file.index, files::file_name(first.path.as_ref()));
        let same_rank = first.shape().len() == array.shape().len();
        if first.dtype() != array.dtype() || !same_rank || first.shape().get(1..) != array.shape().get(1..) {
            let text = format!("the array is {array:?}, that of {of} is {first:?}: only their rows may differ");
            return Err(Error::data(text).path(&file.path).offset(0));
        }
    }
    Ok(())
}

/// Format that reads rows as elements.
struct Rows {
    field: Name,
}

impl Numbered for Rows {
    type Record = Element;
    type Index = Stored;

    const NAME: &'static str = "npy";
    const IS_VIEW: bool = true;
    const HAS_COLUMNS: bool = true;

    fn len(&self, file: &File<Stored>) -> u64 {
        file.index.rows()
    }

    fn read(&self, file: &File<Stored>, row: u64) -> Result<Element> {
        let row = aligned(file.index.row(&file.content, row)?)?;
        Ok(Element::from_unique(vec![(self.field.clone(), row.into())]))
    }

    fn ranges(&self, file: &File<Stored>, row: u64) -> impl IntoIterator<Item = Range<u64>> {
        file.index.far(row)
    }

    fn params(&self) -> String {
        format!(", field={}", self.field)
    }
}

named_source!(Npy of Element {
    fn read_stacked(&self, indices: &[u64]) -> GetStacked<Element> {
        self.stacked(indices)
    }
});

reader! {
    /// Opens NumPy arrays, with a record for each row: see [`Npy`](crate::source::Npy).
    ///
    /// ```
    /// use gristmill::prelude::*;
    /// # use gristmill::{Array, Element, sink::{Sink, SinkFormat}};
    /// # let dir = std::env::temp_dir().join(format!("gristmill-doc-open-npy-{}", std::process::id()));
    /// # let mut sink = Sink::options(SinkFormat::Npy).open(&dir)?;
    /// # sink.write(Element::new().with("data", Array::from_vec(vec![1_i32, 2])))?;
    /// # sink.finish()?;
    /// assert_eq!(gristmill::npy(&dir)?.to_iter().batch(8).collect()?[0].array("data")?.shape(), [1, 2]);
    /// # std::fs::remove_dir_all(&dir).unwrap();
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    npy: Npy
}

/// Returns the array, copied if its address in the file is not aligned.
pub(super) fn aligned(array: Array) -> Result<Array> {
    if (array.bytes().as_ptr() as usize).is_multiple_of(array.dtype().size()) {
        return Ok(array);
    }
    Array::new(array.dtype(), array.shape(), Buffer::copy_from(array.bytes()))
}

/// Decodes a whole `.npy` file. Returns a view, or a copy if the array is big-endian or in Fortran order.
pub(crate) fn decode(file: Buffer) -> Result<Array> {
    let header = Header::parse(file.as_bytes())?;
    let data = file.slice(header.start..header.start + header.len);
    let data = data.ok_or_else(|| Error::data("the array lies outside of the file"))?;
    let (dtype, shape) = (header.dtype, header.shape.as_slice());
    let (swap, transpose) = (header.is_swapped(), header.is_transposed());
    if !swap && !transpose {
        return Array::new(dtype, shape, data);
    }
    let mut out = Array::builder(dtype, shape)?;
    if transpose {
        to_row_major(data.as_bytes(), out.bytes_mut(), shape, dtype.size());
    } else {
        out.bytes_mut().copy_from_slice(data.as_bytes());
    }
    if swap {
        out.bytes_mut().chunks_exact_mut(dtype.size()).for_each(<[u8]>::reverse);
    }
    Ok(out.freeze())
}

/// Encodes a `.npy` file of version 1, as NumPy writes it.
///
/// # Errors
/// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for `bfloat16`, which NumPy does not support.
pub(crate) fn encode(array: &Array) -> Result<Vec<u8>> {
    let shape: Vec<u64> = array.shape().iter().map(|&length| length as u64).collect();
    let mut file = header::encode(array.dtype(), &shape, false)?;
    file.extend_from_slice(array.bytes());
    Ok(file)
}

/// Converts from column-major to row-major order. Iterates over the output and tracks the offset in the input.
fn to_row_major(from: &[u8], to: &mut [u8], shape: &[usize], size: usize) {
    let mut index = vec![0; shape.len()];
    let strides: Vec<usize> =
        shape.iter().scan(size, |stride, &d| Some(std::mem::replace(stride, *stride * d))).collect();
    let mut at = 0;
    for out in to.chunks_exact_mut(size) {
        out.copy_from_slice(&from[at..at + size]);
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            at += strides[axis];
            if index[axis] < shape[axis] {
                break;
            }
            at -= strides[axis] * index[axis];
            index[axis] = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::dataset::map::RandomAccess;
    use crate::element::DType;

    fn npy(header: &str, data: &[u8]) -> Buffer {
        // Padded as by NumPy, so that the data starts at a multiple of 64.
        let text = format!("{header:<117}\n");
        let mut file = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
        file.extend_from_slice(text.as_bytes());
        file.extend_from_slice(data);
        Buffer::copy_from(&file)
    }

    #[test]
    fn fortran_order_and_big_endian_are_turned_around() {
        // The array [[1, 2, 3], [4, 5, 6]] in column-major order.
        let data: Vec<u8> = [1u16, 4, 2, 5, 3, 6].iter().flat_map(|n| n.to_be_bytes()).collect();
        let a = decode(npy("{'descr': '>u2', 'fortran_order': True, 'shape': (2, 3), }", &data)).unwrap();
        assert_eq!(a.as_slice::<u16>().unwrap(), [1, 2, 3, 4, 5, 6]);
        let a = decode(npy("{'descr': '>u2', 'fortran_order': True, 'shape': (1, 6), }", &data)).unwrap();
        assert_eq!(a.as_slice::<u16>().unwrap(), [1, 4, 2, 5, 3, 6]);
        let a = decode(npy("{'descr': '>u2', 'fortran_order': True, 'shape': (0, 6), }", &[])).unwrap();
        assert_eq!(a.shape(), [0, 6]);
    }

    #[test]
    fn rows_of_all_files_are_batched_at_once() {
        use crate::element::Stack;
        let dir = tempfile::tempdir().unwrap();
        for (name, shape, first) in [("a", "(2, 3)", 0u16), ("b", "(1, 3)", 6), ("c", "(3,)", 0), ("d", "(2, 0)", 9)] {
            let data: Vec<u8> = (first..).take(6 / (1 + usize::from(name > "a"))).flat_map(u16::to_le_bytes).collect();
            let header = format!("{{'descr': '<u2', 'fortran_order': False, 'shape': {shape}, }}");
            let data = if name == "d" { &[][..] } else { &data };
            std::fs::write(dir.path().join(name).with_extension("npy"), npy(&header, data).as_bytes()).unwrap();
        }
        for (names, indices) in [(&["a", "b"][..], [2, 0, 2]), (&["c"], [0, 2, 1]), (&["d"], [1, 0, 1])] {
            let paths: Vec<PathBuf> = names.iter().map(|name| dir.path().join(name).with_extension("npy")).collect();
            let source = Npy::open(&paths).unwrap();
            let expected = Element::stack(indices.iter().map(|&index| source.read(index).unwrap()).collect()).unwrap();
            let batch = source.read_stacked(&indices).unwrap();
            assert_eq!((batch.len, batch.bytes), (3, expected.nbytes()));
            assert_eq!(batch.batch, expected);
            assert!(source.read_stacked(&[0, 9]).is_none());
        }
    }

    /// Compares with the output of `numpy.save` for `np.arange(3, dtype="<u2")`, and round-trips other shapes.
    #[test]
    fn files_are_numpys() {
        let file = encode(&Array::from_vec(vec![0u16, 1, 2])).unwrap();
        let want = npy("{'descr': '<u2', 'fortran_order': False, 'shape': (3,), }", &[0, 0, 1, 0, 2, 0]);
        assert_eq!(file, want.as_bytes());
        for shape in [[].as_slice(), &[2, 3], &[0, 4]] {
            let array = Array::builder(DType::F32, shape).unwrap().freeze();
            assert_eq!(decode(Buffer::copy_from(&encode(&array).unwrap())).unwrap(), array);
        }
        let truths = Array::bool(true);
        assert_eq!(decode(Buffer::copy_from(&encode(&truths).unwrap())).unwrap(), truths);
        assert!(encode(&Array::builder(DType::BF16, &[1]).unwrap().freeze()).is_err());
    }

    #[test]
    fn rows_are_views() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.npy");
        let data: Vec<u8> = (0..6i32).flat_map(i32::to_le_bytes).collect();
        std::fs::write(&path, npy("{'descr': '<i4', 'fortran_order': False, 'shape': (3, 2), }", &data).as_bytes())
            .unwrap();
        let source = Npy::open(&path).unwrap().field("x");
        assert_eq!(source.len(), 3);
        let row = source.read(2).unwrap();
        assert_eq!(row.array("x").unwrap().as_slice::<i32>().unwrap(), [4, 5]);
        assert_eq!(row.array("x").unwrap().bytes().as_ptr(), source.array().unwrap().bytes()[16..].as_ptr());
        assert!(source.read(3).is_err());
        assert!(source.facts().identity.contains("a.npy") && source.facts().identity.contains("field=x"));
    }

    #[test]
    fn files_follow_each_other_if_their_rows_are_alike() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, shape: &str, numbers: u8| {
            let header = format!("{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}");
            std::fs::write(dir.path().join(name), npy(&header, &vec![numbers; numbers.into()]).as_bytes()).unwrap();
        };
        write("a.npy", "(2, 2)", 4);
        write("b.npy", "(0, 2)", 0);
        write("c.npy", "(1, 2)", 2);
        let source = Npy::open(dir.path()).unwrap();
        let read = |i| source.read(i).unwrap().array("data").unwrap().bytes().to_vec();
        assert_eq!((source.len(), read(1), read(2)), (3, vec![4, 4], vec![2, 2]));
        assert_eq!(source.arrays().unwrap().len(), 3);
        write("d.npy", "(2,)", 2);
        let error = Npy::open(dir.path()).unwrap_err().to_string();
        assert!(
            error.ends_with(
                "d.npy: byte 0: the array is uint8[2], that of a.npy is uint8[2, 2]: only their rows may differ"
            ),
            "{error}"
        );
    }

    #[test]
    fn an_odd_place_is_copied() {
        let file = npy("{'descr': '<i4', 'fortran_order': False, 'shape': (1,), }", &[1, 0, 0, 0]);
        let mut odd = vec![0];
        odd.extend_from_slice(file.as_bytes());
        let odd = Buffer::copy_from(&odd);
        let array = decode(odd.slice(1..odd.len()).unwrap()).unwrap();
        assert!(array.as_slice::<i32>().is_err());
        assert_eq!(aligned(array).unwrap().as_slice::<i32>().unwrap(), [1]);
    }

    #[cfg(feature = "http")]
    #[test]
    fn a_length_that_a_server_claims_is_refused() {
        let length = crate::store::tests::CLAIMED - 128;
        let header = format!("{{'descr': '|u1', 'fortran_order': False, 'shape': (1, {length}), }}");
        let mut file = npy(&header, &[]).as_bytes().to_vec();
        file.resize(300_000, 0);
        crate::store::tests::is_refused_if_claimed("a.npy", file, |url| Npy::open(url)?.read(0));
    }
}
