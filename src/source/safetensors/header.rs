//! Positions and types of the tensors in a file.

use std::ops::Range;

use ::safetensors::tensor::{Dtype, Metadata, TensorInfo};

use super::super::content::Content;
use crate::element::{DType, Name};
use crate::error::{Error, Result};

/// Size of the length field at the start of a file, in bytes.
const LENGTH: u64 = 8;
/// The format's limit on the size of headers.
const LONGEST: u64 = 100_000_000;

/// A checked header. The tensors are contiguous and fill the rest of the file.
pub(super) struct Header {
    metadata: Metadata,
    /// Start of the first tensor in the file.
    data: u64,
}

/// Position, type and shape of a tensor.
#[derive(Debug)]
pub(super) struct Tensor {
    pub(super) name: Name,
    pub(super) dtype: DType,
    pub(super) shape: Vec<usize>,
    /// Byte range in the file.
    pub(super) bytes: Range<u64>,
}

impl Header {
    pub(super) fn read(content: &Content) -> Result<Self> {
        let size = content.len();
        let cut = || Error::data(format!("{size} bytes, the length of the header alone has {LENGTH}")).offset(size);
        let stated = content.read(0..LENGTH).map_err(|_| cut())?;
        let length = stated.as_bytes().first_chunk().copied().map_or(0, u64::from_le_bytes);
        if length > (size - LENGTH).min(LONGEST) {
            let text = format!("a header of {length} bytes, where {} follow and {LONGEST} are the most", size - LENGTH);
            return Err(Error::data(text).offset(0));
        }
        let data = LENGTH + length;
        let json = content.read(LENGTH..data)?;
        let metadata: Metadata = serde_json::from_slice(json.as_bytes())
            .map_err(|e| Error::data(format!("the header is damaged: {e}")).offset(LENGTH))?;
        let end = data.checked_add(metadata.data_len() as u64);
        if end != Some(size) {
            let text = format!("the header describes {} bytes of tensors, {} follow", metadata.data_len(), size - data);
            return Err(Error::data(text).offset(data.min(size)).help("the file is cut or damaged"));
        }
        Ok(Self { metadata, data })
    }

    /// Returns the names of the tensors, in the order of their data.
    pub(super) fn names(&self) -> Vec<String> {
        self.metadata.offset_keys()
    }

    pub(super) fn tensors(&self, float8_as_u8: bool) -> Result<Vec<Tensor>> {
        self.names().iter().filter_map(|name| self.tensor(name, float8_as_u8)).collect()
    }

    /// Returns the tensor with this name, if it exists.
    pub(super) fn tensor(&self, name: &str, float8_as_u8: bool) -> Option<Result<Tensor>> {
        let info = self.metadata.info(name)?;
        Some(self.located(name, info, float8_as_u8))
    }

    fn located(&self, name: &str, info: &TensorInfo, float8_as_u8: bool) -> Result<Tensor> {
        let (start, end) = info.data_offsets;
        let bytes = self.data + start as u64..self.data + end as u64;
        let dtype = match number_type(info.dtype) {
            Kind::Ours(dtype) => dtype,
            Kind::Float8 if float8_as_u8 => DType::U8,
            kind => {
                let text = format!("tensor {name:?} is of type {}, which no array has", info.dtype);
                let error = Error::unsupported(text).offset(bytes.start);
                return Err(if let Kind::Float8 = kind {
                    error.help("read it as bytes by `float8_as_u8`, or choose other tensors by `columns`")
                } else {
                    error.help("choose other tensors by `columns`")
                });
            }
        };
        Ok(Tensor { name: Name::new(name), dtype, shape: info.shape.clone(), bytes })
    }
}

impl Tensor {
    pub(super) fn rows(&self) -> Option<u64> {
        self.shape.first().map(|&rows| rows as u64)
    }

    pub(super) fn has_rows_like(&self, other: &Self) -> bool {
        let of = |tensor: &Self| (tensor.name.clone(), tensor.dtype, tensor.shape.get(1..).map(<[usize]>::to_vec));
        of(self) == of(other)
    }

    /// Returns the shape of row `row`, which must exist, and its byte range in the file.
    pub(super) fn row(&self, row: u64) -> (&[usize], Range<u64>) {
        let (rows, shape) = self.shape.split_first().map_or((1, [].as_slice()), |(&rows, shape)| (rows, shape));
        let size = (self.bytes.end - self.bytes.start) / rows.max(1) as u64;
        let start = self.bytes.start + row * size;
        (shape, start..start + size)
    }
}

enum Kind {
    Ours(DType),
    Float8,
    Other,
}

fn number_type(dtype: Dtype) -> Kind {
    Kind::Ours(match dtype {
        Dtype::BOOL => DType::Bool,
        Dtype::U8 => DType::U8,
        Dtype::I8 => DType::I8,
        Dtype::U16 => DType::U16,
        Dtype::I16 => DType::I16,
        Dtype::F16 => DType::F16,
        Dtype::BF16 => DType::BF16,
        Dtype::U32 => DType::U32,
        Dtype::I32 => DType::I32,
        Dtype::F32 => DType::F32,
        Dtype::U64 => DType::U64,
        Dtype::I64 => DType::I64,
        Dtype::F64 => DType::F64,
        Dtype::F8_E5M2 | Dtype::F8_E4M3 | Dtype::F8_E8M0 | Dtype::F8_E4M3FNUZ | Dtype::F8_E5M2FNUZ => {
            return Kind::Float8;
        }
        _ => return Kind::Other,
    })
}

/// Returns the format's name of a number type.
pub(super) fn name_of(dtype: DType) -> Dtype {
    match dtype {
        DType::Bool => Dtype::BOOL,
        DType::U8 => Dtype::U8,
        DType::I8 => Dtype::I8,
        DType::U16 => Dtype::U16,
        DType::I16 => Dtype::I16,
        DType::F16 => Dtype::F16,
        DType::BF16 => Dtype::BF16,
        DType::U32 => Dtype::U32,
        DType::I32 => Dtype::I32,
        DType::F32 => Dtype::F32,
        DType::U64 => Dtype::U64,
        DType::I64 => Dtype::I64,
        DType::F64 => Dtype::F64,
    }
}

/// Encodes the header for tensors in this order, padded to the start of the first tensor.
pub(super) fn written(tensors: &[(&str, DType, Vec<usize>)]) -> Result<Vec<u8>> {
    let failed = |e: &dyn std::fmt::Display| Error::data(format!("no header of safetensors: {e}"));
    let (mut infos, mut at) = (Vec::with_capacity(tensors.len()), 0usize);
    for (name, dtype, shape) in tensors {
        let size = shape.iter().try_fold(dtype.size(), |size, &length| size.checked_mul(length));
        let end = size.and_then(|size| at.checked_add(size)).ok_or_else(|| failed(&"too many numbers"))?;
        let info = TensorInfo { dtype: name_of(*dtype), shape: shape.clone(), data_offsets: (at, end) };
        infos.push(((*name).to_owned(), info));
        at = end;
    }
    let metadata = Metadata::new(None, infos).map_err(|e| failed(&e))?;
    let mut json = serde_json::to_vec(&metadata).map_err(|e| failed(&e))?;
    // Tensors start at a multiple of 8.
    json.resize(json.len().next_multiple_of(LENGTH as usize), b' ');
    let mut header = (json.len() as u64).to_le_bytes().to_vec();
    header.append(&mut json);
    Ok(header)
}
