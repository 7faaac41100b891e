//! Conversion of arrays between the crate and NumPy. Arrays go to NumPy without a copy. Arrays of NumPy are copied,
//! unless the crate owns their memory.
#![expect(unsafe_code, reason = "NumPy's C interface takes pointers")]

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::Arc;

use numpy::npyffi::{NPY_ORDER, NPY_TYPES, PY_ARRAY_API, PyArray_Check, PyArrayObject, npy_intp};
use numpy::{PyArrayDescr, PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyBufferError, PyImportError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyMemoryView, PyString};
use pyo3::{Borrowed, PyTypeInfo, ffi, intern};

use super::error;
use crate::element::{Array, Buffer, DType, Owner};
use crate::error::{Error, Result};
use crate::startup::making;

/// The owner of an array's memory. It lives as long as any view of it.
#[pyclass(frozen, module = "gristmill._gristmill")]
#[derive(Debug)]
pub(crate) struct Memory {
    bytes: Buffer,
    /// Whether Python may write to it, so that the crate may not share it.
    writable: bool,
}

/// Permissions of an array that leaves the crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    /// Made [exclusive](Array::into_exclusive) by a copy, unless it is already.
    Write,
}

/// Flag of writable arrays.
const WRITABLE: c_int = 0x0400;

/// Checks that NumPy exists, because its interface panics without it.
pub(crate) fn ready(py: Python<'_>) -> PyResult<()> {
    static NUMPY: PyOnceLock<()> = PyOnceLock::new();
    NUMPY.get_or_try_init(py, || making("NumPy imported", || numpy_module(py).map(drop))).copied()
}

/// Whether NumPy is imported, without which no arrays exist.
pub(crate) fn is_loaded(py: Python<'_>) -> PyResult<bool> {
    Ok(loaded(py)?.is_some())
}

/// Returns NumPy if it is imported, or is being imported.
pub(crate) fn loaded(py: Python<'_>) -> PyResult<Option<Bound<'_, PyAny>>> {
    let modules = py.import("sys")?.getattr("modules")?.cast_into::<pyo3::types::PyDict>()?;
    modules.get_item("numpy")
}

/// Returns an array that views the memory of `array`, read-only unless `access` permits writes. A scalar becomes a
/// NumPy scalar.
pub(crate) fn to_numpy(py: Python<'_>, array: Array, access: Access) -> PyResult<Bound<'_, PyAny>> {
    ready(py)?;
    let dtype = to_dtype(py, array.dtype())?;
    if array.shape().is_empty() {
        return scalar(&dtype, &array);
    }
    let mut dims: Vec<npy_intp> = array.shape().iter().map(|&d| d as npy_intp).collect();
    let writable = access == Access::Write;
    let mut bytes = if writable { array.into_exclusive().into_buffer() } else { array.into_buffer() };
    // Exclusive bytes are on the heap, so they stay in place if the handle moves.
    let lent = if writable { bytes.as_mut_bytes().map(<[u8]>::as_mut_ptr) } else { None };
    let memory = Bound::new(py, Memory { bytes, writable: lent.is_some() })?;
    // Short bytes are stored in their handle, which is in the Python object and does not move.
    let data = lent.unwrap_or_else(|| memory.get().bytes.as_bytes().as_ptr().cast_mut()).cast::<c_void>();
    let flags = if lent.is_some() { WRITABLE } else { 0 };
    // SAFETY: the interpreter is attached. The call takes the reference to the descriptor. `dims` has `ndim` entries.
    // `data` has the bytes of dtype and shape, an invariant of `Array`. Writable flags are set only for exclusive
    // memory, from an exclusive borrow. The result is a new reference or null.
    let view = unsafe {
        let subtype = PyUntypedArray::type_object_raw(py);
        let (rank, dims) = (dims.len() as c_int, dims.as_mut_ptr());
        let new = PY_ARRAY_API.PyArray_NewFromDescr(
            py,
            subtype,
            dtype.into_dtype_ptr(),
            rank,
            dims,
            null_mut(),
            data,
            flags,
            null_mut(),
        );
        Bound::from_owned_ptr_or_err(py, new)?
    };
    // SAFETY: `view` is an array without a base. The call takes the reference to the owner, also if it fails.
    let done = unsafe { PY_ARRAY_API.PyArray_SetBaseObject(py, view.as_ptr().cast(), memory.into_ptr()) };
    if done < 0 { Err(PyErr::fetch(py)) } else { Ok(view) }
}

fn scalar<'py>(dtype: &Bound<'py, PyArrayDescr>, array: &Array) -> PyResult<Bound<'py, PyAny>> {
    let py = dtype.py();
    let data = array.bytes().as_ptr().cast_mut().cast::<c_void>();
    // SAFETY: the call copies a number of `dtype` from `data`, with any alignment.
    unsafe {
        let new = PY_ARRAY_API.PyArray_Scalar(py, data, dtype.as_dtype_ptr(), null_mut::<ffi::PyObject>());
        Bound::from_owned_ptr_or_err(py, new)
    }
}

/// Converts a NumPy array to an array of the crate.
pub(crate) fn from_numpy(array: &Bound<'_, PyUntypedArray>) -> Result<Array> {
    let dtype = from_dtype(&array.dtype())?;
    if array.is_c_contiguous() {
        return Array::new(dtype, array.shape(), bytes_of(array, dtype));
    }
    let ordered = numpy_module(array.py()).and_then(|numpy| numpy.call_method1("ascontiguousarray", (array,)));
    let ordered = ordered.and_then(|array| Ok(array.cast_into::<PyUntypedArray>()?)).map_err(error::caught)?;
    Array::new(dtype, ordered.shape(), bytes_of(&ordered, dtype))
}

/// Converts a NumPy array, without a copy if another object owns the memory and nothing may write to it. The object
/// is kept as long as views exist. An array with memory of its own is copied, because `resize` and `__setstate__`
/// free memory that has views.
pub(crate) fn share_numpy(array: &Bound<'_, PyUntypedArray>) -> Result<Array> {
    let len = array.len() * array.dtype().itemsize();
    let owner = || owner_of(array).filter(|_| array.is_c_contiguous() && len > 0 && memory_of(array).is_none());
    let Some(owner) = owner() else { return from_numpy(array) };
    // SAFETY: the pointer is to a live array object.
    let data = unsafe { (*array.as_array_ptr()).fields.data as usize };
    let kept = Kept { _owner: owner.unbind(), data, len };
    Array::new(from_dtype(&array.dtype())?, array.shape(), Buffer::from_owner(Arc::new(kept)))
}

/// Returns the object, other than an array, that owns the memory of an array; `None` if there is none, or the memory
/// is writable.
fn owner_of<'py>(array: &Bound<'py, PyUntypedArray>) -> Option<Bound<'py, PyAny>> {
    let mut array = array.clone();
    loop {
        if is_writable(&array) {
            return None;
        }
        let base = base_of(&array)?;
        match base.cast_into::<PyUntypedArray>() {
            Ok(base) => array = base,
            Err(other) => {
                let base = other.into_inner();
                // Objects without buffers, such as JAX's arrays, make read-only arrays.
                let readonly = PyMemoryView::from(&base).and_then(|view| view.getattr("readonly")?.is_truthy());
                return readonly.unwrap_or(true).then_some(base);
            }
        }
    }
}

/// The owner of the memory of a read-only array, which a buffer views.
struct Kept {
    _owner: Py<PyAny>,
    /// Address of its bytes, `len` of them.
    data: usize,
    len: usize,
}

impl Owner for Kept {
    fn bytes(&self) -> &[u8] {
        // SAFETY: the array was contiguous, so it has `len` bytes. Their owner is kept, and lends them without write
        // access for its lifetime, or the maker of the read-only array guarantees that nothing writes to them.
        unsafe { std::slice::from_raw_parts(self.data as *const u8, self.len) }
    }
}

/// Returns the bytes of a contiguous array: shared if the crate owns them read-only, else copied.
fn bytes_of(array: &Bound<'_, PyUntypedArray>, dtype: DType) -> Buffer {
    let len = array.len() * dtype.size();
    // SAFETY: the pointer is to a live array object.
    let data = unsafe { (*array.as_array_ptr()).fields.data.cast::<u8>().cast_const() };
    if let Some(memory) = memory_of(array) {
        let owned = &memory.get().bytes;
        let start = (data as usize).wrapping_sub(owned.as_bytes().as_ptr() as usize);
        if let Some(end) = start.checked_add(len)
            && let Some(view) = owned.slice(start..end)
        {
            return view;
        }
    }
    if len == 0 {
        return Buffer::EMPTY;
    }
    // SAFETY: a contiguous array has `len` readable bytes from `data` on, and no Python code runs before they are copied.
    Buffer::copy_from(unsafe { std::slice::from_raw_parts(data, len) })
}

/// Returns the number of references to an object.
pub(crate) fn references(object: &Bound<'_, PyAny>) -> isize {
    // SAFETY: the pointer is to a live object, and the interpreter is held.
    unsafe { ffi::Py_REFCNT(object.as_ptr()) }
}

/// Whether NumPy is imported. Without NumPy there are no arrays.
pub(crate) fn has_arrays(py: Python<'_>) -> bool {
    static THERE: PyOnceLock<()> = PyOnceLock::new();
    THERE.get(py).is_some() || {
        // SAFETY: the interpreter is attached. It keeps the dict for its lifetime, and the pointer is a borrowed
        // reference.
        let modules = unsafe { Bound::from_borrowed_ptr_or_opt(py, ffi::PyImport_GetModuleDict()) };
        let modules = modules.and_then(|modules| modules.cast_into::<PyDict>().ok());
        let loaded = modules.is_some_and(|modules| modules.contains(intern!(py, "numpy")).unwrap_or(false));
        if !loaded || ready(py).is_err() {
            return false;
        }
        // Another thread may have been first.
        let _ = THERE.set(py, ());
        true
    }
}

/// Returns the base of an array.
pub(crate) fn base_of<'py>(array: &Bound<'py, PyUntypedArray>) -> Option<Bound<'py, PyAny>> {
    // SAFETY: the pointer is to a live array object, which holds a reference to its base.
    unsafe { Bound::from_borrowed_ptr_or_opt(array.py(), (*array.as_array_ptr()).fields.base) }
}

/// Whether an array is writable.
pub(crate) fn is_writable(array: &Bound<'_, PyUntypedArray>) -> bool {
    // SAFETY: the pointer is to a live array object.
    unsafe { (*array.as_array_ptr()).fields.flags & WRITABLE != 0 }
}

/// Whether an object owns memory of the crate.
pub(crate) fn is_memory(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<Memory>()
}

/// Whether no other reference can write to an array: the array is `alone`, as the caller has checked, and so is each
/// base of it; or none of them is writable.
pub(crate) fn is_alone(array: &Bound<'_, PyUntypedArray>, mut alone: bool) -> bool {
    let mut writable = is_writable(array);
    // SAFETY: the pointer is to a live array object.
    let mut base = unsafe { (*array.as_array_ptr()).fields.base };
    while !base.is_null() {
        // SAFETY: the previous array holds a reference to its base for the lifetime of `array`. If the base is an
        // array, it has the fields of an array.
        unsafe {
            alone &= ffi::Py_REFCNT(base) == 1;
            if PyArray_Check(array.py(), base) == 0 {
                let object = Borrowed::from_ptr(array.py(), base);
                alone &= is_memory(&object) || object.is_instance_of::<PyByteArray>();
                break;
            }
            let fields = &(*base.cast::<PyArrayObject>()).fields;
            writable |= fields.flags & WRITABLE != 0;
            base = fields.base;
        }
    }
    alone || !writable
}

/// Copies an array into new memory, in the layout of `array`. The copy of a subclass is made by its method `copy`.
pub(crate) fn copy_of<'py>(array: &Bound<'py, PyUntypedArray>) -> PyResult<Bound<'py, PyAny>> {
    let py = array.py();
    if !array.is_exact_instance_of::<PyUntypedArray>() {
        return array.call_method0("copy");
    }
    // SAFETY: the pointer is to a live array object; the result is a new reference or null.
    unsafe {
        let new = PY_ARRAY_API.PyArray_NewCopy(py, array.as_array_ptr(), NPY_ORDER::NPY_KEEPORDER);
        Bound::from_owned_ptr_or_err(py, new)
    }
}

/// Flag of arrays that free their memory.
const OWNS_DATA: c_int = 0x0004;

/// Returns the dtype of a contiguous array and the range of its bytes, if the array owns its memory, or its base does
/// and has no other view. The caller must check references to the array.
pub(crate) fn own_memory(array: &Bound<'_, PyUntypedArray>) -> Option<(DType, std::ops::Range<usize>)> {
    let dtype = from_dtype(&array.dtype()).ok().filter(|_| array.is_c_contiguous())?;
    // SAFETY: the pointer is to a live array object.
    let (data, mut base, mut flags) = unsafe {
        let fields = &(*array.as_array_ptr()).fields;
        (fields.data as usize, fields.base, fields.flags)
    };
    while !base.is_null() {
        // SAFETY: the previous array holds a reference to its base.
        let (owner, references) = unsafe { (Bound::from_borrowed_ptr(array.py(), base), ffi::Py_REFCNT(base)) };
        // The local reference, and the reference of the view.
        let owner = owner.cast_into_exact::<PyUntypedArray>().ok().filter(|_| references == 2)?;
        // SAFETY: the pointer is to a live array object.
        (base, flags) = unsafe {
            let fields = &(*owner.as_array_ptr()).fields;
            (fields.base, fields.flags)
        };
    }
    (flags & OWNS_DATA != 0).then(|| (dtype, data..data + array.len() * dtype.size()))
}

/// Calls `read` with an array; returns `None` if native stages have no such dtype.
pub(crate) fn view<T>(
    array: &Bound<'_, PyUntypedArray>,
    read: impl FnOnce(DType, &[usize], &[u8]) -> T,
) -> Result<Option<T>> {
    let Ok(dtype) = from_dtype(&array.dtype()) else { return Ok(None) };
    let ordered = if array.is_c_contiguous() {
        array.clone()
    } else {
        let ordered = numpy_module(array.py()).and_then(|numpy| numpy.call_method1("ascontiguousarray", (array,)));
        ordered.and_then(|array| Ok(array.cast_into()?)).map_err(error::caught)?
    };
    let len = ordered.len() * dtype.size();
    if len == 0 {
        return Ok(Some(read(dtype, array.shape(), &[])));
    }
    // SAFETY: the pointer is to a live array object.
    let data = unsafe { (*ordered.as_array_ptr()).fields.data.cast::<u8>().cast_const() };
    // SAFETY: a contiguous array has `len` readable bytes at `data`, it lives until this function returns, and the
    // interpreter is attached, so that no Python code writes to it meanwhile.
    Ok(Some(read(dtype, array.shape(), unsafe { std::slice::from_raw_parts(data, len) })))
}

/// Calls `read` with the dtype, shape and bytes of several arrays, if all are contiguous and have one dtype and one
/// shape.
pub(crate) fn alike<T>(
    arrays: &[Bound<'_, PyUntypedArray>],
    read: impl FnOnce(DType, &[usize], &[&[u8]]) -> T,
) -> Option<T> {
    let (first, dtype) = (arrays.first()?, arrays.first()?.dtype());
    let native = from_dtype(&dtype).ok()?;
    let like = |array: &Bound<'_, PyUntypedArray>| {
        array.is_c_contiguous() && array.shape() == first.shape() && array.dtype().is_equiv_to(&dtype)
    };
    if !arrays.iter().all(like) {
        return None;
    }
    let len = first.len() * native.size();
    let bytes = |array: &Bound<'_, PyUntypedArray>| {
        if len == 0 {
            return &[][..];
        }
        // SAFETY: the pointer is to a live array object.
        let data = unsafe { (*array.as_array_ptr()).fields.data.cast::<u8>().cast_const() };
        // SAFETY: a contiguous array with this dtype and shape has `len` readable bytes at `data`. `arrays` keeps it
        // until this function returns, and the interpreter is attached, so that no Python code writes to it
        // meanwhile.
        unsafe { std::slice::from_raw_parts(data, len) }
    };
    let rows: Vec<&[u8]> = arrays.iter().map(bytes).collect();
    Some(read(native, first.shape(), &rows))
}

/// Calls `read` with the bytes of any object with a contiguous buffer.
pub(crate) fn with_bytes<T>(object: &Bound<'_, PyAny>, read: impl FnOnce(&[u8]) -> T) -> PyResult<T> {
    let bytes = PyBuffer::<u8>::get(object)?;
    if bytes.len_bytes() == 0 {
        return Ok(read(&[]));
    }
    if !bytes.is_c_contiguous() {
        return Err(PyBufferError::new_err("the buffer is not contiguous"));
    }
    // SAFETY: the buffer is held and contiguous, and the interpreter is attached, so that no Python code writes to
    // its bytes meanwhile.
    Ok(read(unsafe { std::slice::from_raw_parts(bytes.buf_ptr().cast::<u8>(), bytes.len_bytes()) }))
}

/// Copies to Python's `bytes`. Raises `MemoryError` if there is too little memory.
pub(crate) fn to_bytes<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, bytes.len(), |copy| {
        copy.copy_from_slice(bytes);
        Ok(())
    })
}

/// Copies to Python's `str`. Raises `MemoryError` if there is too little memory.
pub(crate) fn to_str<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyString>> {
    PyString::from_bytes(py, text.as_bytes())
}

/// Returns the owner of an array's memory, through any number of views, if the crate owns the memory and nothing may
/// write to it.
fn memory_of<'py>(array: &Bound<'py, PyUntypedArray>) -> Option<Bound<'py, Memory>> {
    let mut array = array.clone();
    loop {
        match base_of(&array)?.cast_into::<PyUntypedArray>() {
            Ok(inner) => array = inner,
            Err(other) => {
                let memory = other.into_inner().cast_into::<Memory>().ok();
                return memory.filter(|memory| !memory.get().writable);
            }
        }
    }
}

pub(crate) fn numpy_module(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    py.import("numpy")
}

fn to_dtype(py: Python<'_>, dtype: DType) -> PyResult<Bound<'_, PyArrayDescr>> {
    let code = match dtype {
        DType::Bool => NPY_TYPES::NPY_BOOL,
        DType::U8 => NPY_TYPES::NPY_UBYTE,
        DType::I8 => NPY_TYPES::NPY_BYTE,
        DType::U16 => NPY_TYPES::NPY_USHORT,
        DType::I16 => NPY_TYPES::NPY_SHORT,
        DType::F16 => NPY_TYPES::NPY_HALF,
        DType::U32 => NPY_TYPES::NPY_UINT,
        DType::I32 => NPY_TYPES::NPY_INT,
        DType::F32 => NPY_TYPES::NPY_FLOAT,
        DType::U64 => return Ok(numpy::dtype::<u64>(py)),
        DType::I64 => return Ok(numpy::dtype::<i64>(py)),
        DType::F64 => NPY_TYPES::NPY_DOUBLE,
        DType::BF16 => return bfloat16(py),
    };
    // SAFETY: the code is a type number of NumPy. The result is a new reference or null.
    let descr = unsafe {
        let new = PY_ARRAY_API.PyArray_DescrFromType(py, code as c_int);
        Bound::from_owned_ptr_or_err(py, new.cast())?
    };
    Ok(descr.cast_into()?)
}

/// Returns the dtype of a NumPy type, without making its name.
fn builtin(kind: u8, size: usize) -> Option<DType> {
    Some(match (kind, size) {
        (b'b', 1) => DType::Bool,
        (b'u', 1) => DType::U8,
        (b'i', 1) => DType::I8,
        (b'u', 2) => DType::U16,
        (b'i', 2) => DType::I16,
        (b'f', 2) => DType::F16,
        (b'u', 4) => DType::U32,
        (b'i', 4) => DType::I32,
        (b'f', 4) => DType::F32,
        (b'u', 8) => DType::U64,
        (b'i', 8) => DType::I64,
        (b'f', 8) => DType::F64,
        _ => return None,
    })
}

/// NumPy has no such type.
fn bfloat16(py: Python<'_>) -> PyResult<Bound<'_, PyArrayDescr>> {
    let ml_dtypes = py.import("ml_dtypes").map_err(|_| {
        PyImportError::new_err("an array of bfloat16 needs the package ml_dtypes: pip install ml_dtypes")
    })?;
    PyArrayDescr::new(py, ml_dtypes.getattr("bfloat16")?)
}

fn from_dtype(dtype: &Bound<'_, PyArrayDescr>) -> Result<DType> {
    let known = if dtype.num() < NPY_TYPES::NPY_USERDEF as c_int {
        builtin(dtype.kind(), dtype.itemsize())
    } else {
        let name: String = dtype.getattr("name").and_then(|name| name.extract()).map_err(error::caught)?;
        DType::from_name(&name)
    };
    match known {
        Some(known) if dtype.is_native_byteorder() != Some(false) => Ok(known),
        _ => Err(Error::data(format!("native stages have no arrays of dtype {dtype}"))
            .help("keep it after the native stages, or convert it by `astype`")),
    }
}
