//! Arrays: type and shape precede the numbers, unless the encoding's name specifies them.

use super::super::npy;
use super::encoding::has;
use crate::element::{Array, Buffer, DType};
use crate::error::{Error, Result};

/// Type and shape shared by all arrays of a column, if the encoding's name specifies them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct NdArray {
    dtype: Option<DType>,
    shape: Option<Vec<usize>>,
}

/// Type codes of the format.
const CODES: [(u8, DType); 11] = [
    (8, DType::U8),
    (9, DType::I8),
    (16, DType::U16),
    (17, DType::I16),
    (18, DType::F16),
    (32, DType::U32),
    (33, DType::I32),
    (34, DType::F32),
    (64, DType::U64),
    (65, DType::I64),
    (66, DType::F64),
];

impl NdArray {
    /// Parses the part of the name after `ndarray:`: `float32:3,4`, `float32` or an empty string.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(':');
        let dtype = match parts.next().unwrap_or_default() {
            "" => None,
            name => Some(DType::from_name(name).filter(|&dtype| has(dtype))?),
        };
        let dim = |text: &str| text.trim().parse::<usize>().ok().filter(|&dim| dim > 0);
        let shape: Option<Vec<usize>> = match parts.next() {
            None => None,
            Some(text) => Some(text.split(',').map(dim).collect::<Option<_>>()?),
        };
        (parts.next().is_none() && (dtype.is_some() || shape.is_none())).then_some(Self { dtype, shape })
    }

    /// Returns the size of an array in bytes, or `None` if it varies.
    pub(super) fn size(&self) -> Option<u64> {
        let (dtype, shape) = (self.dtype?, self.shape.as_ref()?);
        shape.iter().try_fold(dtype.size() as u64, |n, &dim| n.checked_mul(dim as u64))
    }

    pub(super) fn decode(&self, data: &Buffer) -> Result<Array> {
        let mut at = 0;
        let dtype = if let Some(dtype) = self.dtype {
            dtype
        } else {
            let code = take(data, &mut at, 1)?[0];
            let dtype = CODES.iter().find(|(known, _)| *known == code).map(|(_, dtype)| *dtype);
            dtype.ok_or_else(|| Error::data(format!("code {code} is not a number type")))?
        };
        let shape = if let Some(shape) = &self.shape { shape.clone() } else { dims(data, &mut at)? };
        let numbers = data.slice(at..data.len()).unwrap_or(Buffer::EMPTY);
        npy::aligned(Array::new(dtype, &shape, numbers)?)
    }

    /// Encodes an array.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) if type or shape differ from the column's. The format also excludes
    /// scalars, dimensions of 0, and more than 63 dimensions.
    pub(super) fn encode(&self, array: &Array, out: &mut Vec<u8>) -> Result<()> {
        let (dtype, shape) = (array.dtype(), array.shape());
        let code = CODES.iter().find(|(_, known)| *known == dtype).map(|(code, _)| *code);
        let code = code.ok_or_else(|| Error::data(format!("MDS has no arrays of {dtype}")))?;
        match self.dtype {
            None => out.push(code),
            Some(want) if want != dtype => return Err(Error::data(format!("an array of {dtype}, not of {want}"))),
            Some(_) => {}
        }
        match &self.shape {
            None => put_dims(shape, out)?,
            Some(want) if want != shape => {
                return Err(Error::data(format!("an array of shape {shape:?}, not {want:?}")));
            }
            Some(_) => {}
        }
        out.extend_from_slice(array.bytes());
        Ok(())
    }
}

fn take<'a>(data: &'a Buffer, at: &mut usize, bytes: usize) -> Result<&'a [u8]> {
    let taken = data.as_bytes().get(*at..*at + bytes);
    *at += bytes;
    taken.ok_or_else(|| Error::data(format!("an array of {} bytes, which is too short for its shape", data.len())))
}

/// Reads the dimensions. Their first byte combines their number and their width.
fn dims(data: &Buffer, at: &mut usize) -> Result<Vec<usize>> {
    let byte = take(data, at, 1)?[0];
    let (count, width) = (usize::from(byte >> 2), 1 << (byte & 3));
    let mut shape = Vec::with_capacity(count);
    for _ in 0..count {
        let mut number = [0; 8];
        number[..width].copy_from_slice(take(data, at, width)?);
        let dim = usize::try_from(u64::from_le_bytes(number));
        shape.push(dim.map_err(|_| Error::data("a dimension does not fit in memory"))?);
    }
    Ok(shape)
}

fn put_dims(shape: &[usize], out: &mut Vec<u8>) -> Result<()> {
    let most = shape.iter().copied().max().unwrap_or_default() as u64;
    if shape.is_empty() || shape.len() > 63 || shape.contains(&0) {
        let text = format!("MDS has no arrays of shape {shape:?}: 1 to 63 dimensions of at least 1");
        return Err(Error::data(text));
    }
    let width = (0..3).find(|&width| most < 1 << (8 << width)).unwrap_or(3);
    out.push((shape.len() as u8) << 2 | width);
    for &dim in shape {
        out.extend_from_slice(&(dim as u64).to_le_bytes()[..1 << width]);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn again(name: &str, array: &Array) -> (Vec<u8>, Array) {
        let encoding = NdArray::parse(name).unwrap();
        let mut bytes = Vec::new();
        encoding.encode(array, &mut bytes).unwrap();
        let read = encoding.decode(&Buffer::copy_from(&bytes)).unwrap();
        (bytes, read)
    }

    /// Compares with the output of streaming 0.13.0 for `np.arange(6, dtype="uint16").reshape(2, 3)`.
    #[test]
    fn the_three_forms() {
        let numbers = [0, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0];
        let array = Array::new(DType::U16, &[2, 3], Buffer::copy_from(&numbers)).unwrap();
        for (name, head) in [("", [16, 8, 2, 3].as_slice()), ("uint16", &[8, 2, 3]), ("uint16:2,3", &[])] {
            assert_eq!(again(name, &array), ([head, &numbers].concat(), array.clone()), "{name}");
        }
        let long = Array::from_vec(vec![1u8; 300]);
        assert_eq!(again("", &long).0[..4], [8, 5, 44, 1]);
        assert_eq!(again("", &long).1, long);
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        let plain = NdArray::default();
        let encode = |encoding: &NdArray, array: &Array| encoding.encode(array, &mut Vec::new()).is_err();
        assert!(encode(&plain, &Array::scalar(1u8)) && encode(&plain, &Array::from_vec(Vec::<u8>::new())));
        assert!(encode(&NdArray::parse("int8").unwrap(), &Array::from_vec(vec![1u8])));
        assert!(encode(&NdArray::parse("uint8:2").unwrap(), &Array::from_vec(vec![1u8])));
        let decode = |bytes: &[u8]| plain.decode(&Buffer::copy_from(bytes)).is_err();
        assert!(decode(&[]) && decode(&[8]) && decode(&[7, 4, 1, 0]) && decode(&[8, 4, 2, 0]) && decode(&[8, 6, 2]));
        assert!(decode(&[&[8, 11][..], &[255; 16]].concat()));
    }
}
