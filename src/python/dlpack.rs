//! Arrays lent to other libraries by DLPack, and given back without the interpreter.
//!
//! NumPy's arrays export themselves, too, but releasing such an export needs the interpreter. Memory that is exported
//! here is released on any thread without it.
//!
//! The structures follow `dlpack.h` of <https://github.com/dmlc/dlpack>, with a version since 1.0 and without a
//! version before.
#![expect(unsafe_code, reason = "DLPack passes structures by address")]

use std::ffi::{CStr, c_void};
use std::sync::Arc;

use numpy::PyUntypedArray;
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;

use super::buffer::from_numpy;
use super::error::OrRaise;
use crate::element::{Array, DType};

/// The CPU, as DLPack counts devices.
const CPU: (i32, i32) = (1, 0);
const READ_ONLY: u64 = 1;

#[repr(C)]
struct Device {
    kind: i32,
    id: i32,
}

#[repr(C)]
struct Type {
    code: u8,
    bits: u8,
    lanes: u16,
}

#[repr(C)]
struct Tensor {
    data: *mut c_void,
    device: Device,
    rank: i32,
    dtype: Type,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

/// `DLManagedTensor`.
#[repr(C)]
struct Unversioned {
    tensor: Tensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Self)>,
}

/// `DLManagedTensorVersioned`.
#[repr(C)]
struct Versioned {
    major: u32,
    minor: u32,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Self)>,
    flags: u64,
    tensor: Tensor,
}

/// Block whose address a consumer holds: first the header, then the memory to which the header points.
#[repr(C)]
struct Lent<H> {
    header: H,
    array: Arc<Array>,
    /// The shape, and then the strides.
    dims: Vec<i64>,
}

/// A header of either version.
trait Header: Sized {
    /// Consumed capsules have another name.
    const NAME: &'static CStr;

    fn new(tensor: Tensor) -> Self;
    fn deleter(&self) -> Option<unsafe extern "C" fn(*mut Self)>;
}

impl Header for Unversioned {
    const NAME: &'static CStr = c"dltensor";

    fn new(tensor: Tensor) -> Self {
        Self { tensor, context: std::ptr::null_mut(), deleter: Some(give_back) }
    }

    fn deleter(&self) -> Option<unsafe extern "C" fn(*mut Self)> {
        self.deleter
    }
}

impl Header for Versioned {
    const NAME: &'static CStr = c"dltensor_versioned";

    fn new(tensor: Tensor) -> Self {
        let context = std::ptr::null_mut();
        Self { major: 1, minor: 0, context, deleter: Some(give_back), flags: READ_ONLY, tensor }
    }

    fn deleter(&self) -> Option<unsafe extern "C" fn(*mut Self)> {
        self.deleter
    }
}

/// The memory of an array, lent read-only to a consumer of DLPack that never writes to it, such as JAX.
///
/// The memory of gristmill's arrays is shared, other arrays are copied. A consumer of version 1.0 of the protocol
/// receives the read-only flag; older versions have no such flag. The memory is released without the interpreter.
#[pyclass(frozen, module = "gristmill._gristmill")]
#[derive(Debug)]
pub(crate) struct Lease {
    array: Array,
}

#[pymethods]
impl Lease {
    /// Shares the memory of an array if the crate owns it and nothing may write to it. Other arrays are copied.
    #[new]
    fn new(py: Python<'_>, array: &Bound<'_, PyUntypedArray>) -> PyResult<Self> {
        Ok(Self { array: from_numpy(array).or_raise(py)? })
    }

    fn __dlpack_device__(&self) -> (i32, i32) {
        CPU
    }

    #[pyo3(signature = (*, stream = None, max_version = None, dl_device = None, copy = None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<&Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if stream.is_some() || dl_device.is_some_and(|device| device != CPU) {
            return Err(PyBufferError::new_err(
                "the memory is the CPU's: it has no stream, and goes to no other device",
            ));
        }
        if copy == Some(true) {
            return Err(PyBufferError::new_err("the memory is lent, not copied: copy the result"));
        }
        // Versions before 1.0 have no read-only flag. Consumers of a lease treat it as read-only.
        if max_version.is_some_and(|(major, _)| major >= 1) {
            capsule::<Versioned>(py, self.array.clone())
        } else {
            capsule::<Unversioned>(py, self.array.clone())
        }
    }
}

fn capsule<H: Header>(py: Python<'_>, array: Array) -> PyResult<Bound<'_, PyAny>> {
    let lent = Box::into_raw(lend::<H>(array));
    // SAFETY: the interpreter is attached, the name is static, and `drop_capsule` fits the type of the address.
    let capsule = unsafe {
        let new = ffi::PyCapsule_New(lent.cast(), H::NAME.as_ptr(), Some(drop_capsule::<H>));
        Bound::from_owned_ptr_or_err(py, new)
    };
    if capsule.is_err() {
        // SAFETY: the address comes from the box above, and no consumer has received it.
        drop(unsafe { Box::from_raw(lent) });
    }
    capsule
}

fn lend<H: Header>(array: Array) -> Box<Lent<H>> {
    // Short bytes are stored in their handle, which must not move.
    let array = Arc::new(array);
    let shape = array.shape();
    let mut strides = vec![1_i64; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis] as i64;
    }
    let mut dims: Vec<i64> = shape.iter().map(|&d| d as i64).chain(strides).collect();
    let (to_shape, rank) = (dims.as_mut_ptr(), shape.len());
    let tensor = Tensor {
        data: array.bytes().as_ptr().cast_mut().cast(),
        device: Device { kind: CPU.0, id: CPU.1 },
        rank: rank as i32,
        dtype: type_of(array.dtype()),
        shape: to_shape,
        strides: to_shape.wrapping_add(rank),
        byte_offset: 0,
    };
    Box::new(Lent { header: H::new(tensor), array, dims })
}

fn type_of(dtype: DType) -> Type {
    let code = match dtype {
        DType::I8 | DType::I16 | DType::I32 | DType::I64 => 0,
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => 1,
        DType::F16 | DType::F32 | DType::F64 => 2,
        DType::BF16 => 4,
        DType::Bool => 6,
    };
    Type { code, bits: 8 * dtype.size() as u8, lanes: 1 }
}

/// Frees the block. A consumer calls it on any thread; it touches no Python object.
///
/// # Safety
/// `header` is that of a [`Lent`] that came of [`lend`], and not used any more.
unsafe extern "C" fn give_back<H>(header: *mut H) {
    // SAFETY: the header is the start of its `Lent`, which comes from a box. The caller gives it up.
    drop(unsafe { Box::from_raw(header.cast::<Lent<H>>()) });
}

/// Destroys a capsule. Frees the block if no consumer has taken it.
///
/// # Safety
/// As Python calls it: with a capsule of [`capsule`], and the interpreter attached.
unsafe extern "C" fn drop_capsule<H: Header>(capsule: *mut ffi::PyObject) {
    // SAFETY: the capsule is alive during this call. A consumed capsule has another name, and is ignored.
    let header = unsafe {
        if ffi::PyCapsule_IsValid(capsule, H::NAME.as_ptr()) == 0 {
            return;
        }
        ffi::PyCapsule_GetPointer(capsule, H::NAME.as_ptr()).cast::<H>()
    };
    // SAFETY: with this name, the address is a header from `lend` that no consumer has taken.
    if let Some(deleter) = unsafe { (*header).deleter() } {
        // SAFETY: as above; it is not used any more.
        unsafe { deleter(header) };
    }
}
