//! Modules of this process (the executable and its shared libraries), as listed by the dynamic loader.

#![allow(unsafe_code, reason = "the list of the loader is available only through a C callback")]

use std::ffi::{CStr, OsStr, c_int, c_void};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::slice;

#[cfg(target_pointer_width = "32")]
type Header = libc::Elf32_Phdr;
#[cfg(target_pointer_width = "64")]
type Header = libc::Elf64_Phdr;

/// Executable or shared library in memory.
#[derive(Clone, Debug)]
pub(crate) struct Module {
    /// Load bias: the number added to every address in the file.
    pub(crate) bias: usize,
    /// Whether the module is the program itself.
    pub(crate) main: bool,
    /// Path that the module was loaded from; empty for the program.
    pub(crate) path: PathBuf,
    /// The linker's GNU build id, a digest of the contents.
    pub(crate) build_id: Option<Vec<u8>>,
    /// Bytes that the segments take in memory.
    pub(crate) image_bytes: u64,
    /// Whether the module names a dynamic loader, as an executable does.
    has_interpreter: bool,
    segments: Vec<Range<usize>>,
    code: Vec<Range<usize>>,
}

impl Module {
    fn holds(&self, address: usize) -> bool {
        self.segments.iter().any(|s| s.contains(&address))
    }

    /// Returns true if `address` is in an executable segment.
    pub(crate) fn is_code(&self, address: usize) -> bool {
        self.code.iter().any(|s| s.contains(&address))
    }
}

/// Lists all modules, starting with the program.
pub(crate) fn loaded() -> Vec<Module> {
    let mut modules: Vec<Module> = Vec::new();
    // SAFETY: `visit` has the signature that is asked for, and its last argument is what is given here: a vector that
    // nothing else uses until the call returns.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut modules).cast()) };
    modules
}

/// Finds the module whose memory contains `address`.
pub(crate) fn holding(address: usize) -> Option<Module> {
    loaded().into_iter().find(|m| m.holds(address))
}

/// Returns true if the program was started as an argument of the dynamic loader. `/proc/self/exe` is then the loader.
pub(crate) fn started_through_loader() -> bool {
    // SAFETY: reads a word that the kernel left for this process.
    let loader_base = unsafe { libc::getauxval(libc::AT_BASE) };
    loader_base == 0 && loaded().first().is_some_and(|m| m.has_interpreter)
}

extern "C" fn visit(info: *mut libc::dl_phdr_info, _size: usize, modules: *mut c_void) -> c_int {
    // SAFETY: the loader hands a valid `info` to its callback, and our own pointer back.
    let (info, modules) = unsafe { (&*info, &mut *modules.cast::<Vec<Module>>()) };
    let main = modules.is_empty();
    modules.push(read(info, main));
    0
}

fn read(info: &libc::dl_phdr_info, main: bool) -> Module {
    let headers = if info.dlpi_phdr.is_null() {
        &[][..]
    } else {
        // SAFETY: the loader says that so many headers are there, and they stay while the module is loaded.
        unsafe { slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) }
    };
    let bias = info.dlpi_addr as usize;
    let range = |h: &Header| {
        let start = bias.wrapping_add(h.p_vaddr as usize);
        start..start.saturating_add(h.p_memsz as usize)
    };
    let loads = || headers.iter().filter(|h| h.p_type == libc::PT_LOAD);
    let segments: Vec<_> = loads().map(range).collect();
    let readable: Vec<_> = loads().filter(|h| h.p_flags & libc::PF_R != 0).map(range).collect();
    let build_id = headers.iter().filter(|h| h.p_type == libc::PT_NOTE).find_map(|h| {
        let note = range(h);
        if !readable.iter().any(|r| r.start <= note.start && note.end <= r.end) {
            return None;
        }
        // SAFETY: the bytes lie inside a readable segment of a loaded module, which nothing writes.
        let bytes = unsafe { slice::from_raw_parts(note.start as *const u8, note.len()) };
        build_id(bytes, h.p_align as usize)
    });
    let path = if info.dlpi_name.is_null() {
        PathBuf::new()
    } else {
        // SAFETY: the loader's names end in a zero byte and stay while the module is loaded.
        PathBuf::from(OsStr::from_bytes(unsafe { CStr::from_ptr(info.dlpi_name) }.to_bytes()))
    };
    Module {
        bias,
        main,
        path,
        build_id,
        image_bytes: segments.iter().map(|s| s.len() as u64).fold(0, u64::saturating_add),
        has_interpreter: headers.iter().any(|h| h.p_type == libc::PT_INTERP),
        code: loads().filter(|h| h.p_flags & libc::PF_X != 0).map(range).collect(),
        segments,
    }
}

/// Finds the build id in a segment of notes. A note is (name length, contents length, type), name, contents, each
/// padded to `align`.
fn build_id(mut notes: &[u8], align: usize) -> Option<Vec<u8>> {
    const NT_GNU_BUILD_ID: u32 = 3;
    let align = if align == 8 { 8 } else { 4 };
    let word = |bytes: &[u8], at: usize| bytes.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes);
    loop {
        let (name_len, contents_len) = (word(notes, 0)? as usize, word(notes, 4)? as usize);
        let name = notes.get(12..12usize.checked_add(name_len)?)?;
        let start = 12usize.checked_add(name_len)?.checked_next_multiple_of(align)?;
        let end = start.checked_add(contents_len)?;
        if word(notes, 8)? == NT_GNU_BUILD_ID && name == b"GNU\0" {
            return notes.get(start..end).filter(|id| !id.is_empty()).map(<[u8]>::to_vec);
        }
        notes = notes.get(end.checked_next_multiple_of(align)?..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(kind: u32, name: &[u8], contents: &[u8], align: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        for n in [name.len() as u32, contents.len() as u32, kind] {
            bytes.extend(n.to_ne_bytes());
        }
        for part in [name, contents] {
            bytes.extend(part);
            bytes.resize(bytes.len().next_multiple_of(align), 0);
        }
        bytes
    }

    #[test]
    fn the_build_id_is_found_among_other_notes() {
        for align in [4, 8] {
            let mut notes = note(1, b"GNU\0", &[9; 16], align);
            notes.extend(note(3, b"Go\0\0", &[8; 5], align));
            assert_eq!(build_id(&notes, align), None);
            notes.extend(note(3, b"GNU\0", &[1, 2, 3, 4, 5], align));
            assert_eq!(build_id(&notes, align), Some(vec![1, 2, 3, 4, 5]));
            for cut in 0..notes.len() {
                build_id(&notes[..cut], align);
            }
        }
    }

    #[test]
    fn lengths_beyond_the_segment_are_no_build_id() {
        let mut notes = note(3, b"GNU\0", &[1; 20], 4);
        notes[4..8].copy_from_slice(&u32::MAX.to_ne_bytes());
        assert_eq!(build_id(&notes, 4), None);
        notes[0..4].copy_from_slice(&u32::MAX.to_ne_bytes());
        assert_eq!(build_id(&notes, 4), None);
    }

    #[test]
    fn this_function_is_code_of_the_program_and_a_string_is_not() {
        let address = loaded as fn() -> Vec<Module> as usize;
        let module = holding(address).unwrap();
        assert!(module.main && module.is_code(address));
        assert!(module.path.as_os_str().is_empty());
        let text = c"text".as_ptr() as usize;
        assert!(module.holds(text) && !module.is_code(text));
        let heap = Box::new(1u8);
        assert!(holding(&raw const *heap as usize).is_none());
        assert!(!started_through_loader());
    }

    #[test]
    fn the_program_is_first_and_libraries_have_paths() {
        let modules = loaded();
        assert!(modules[0].main);
        assert!(modules[1..].iter().all(|m| !m.main));
        assert!(modules[1..].iter().any(|m| m.path.to_string_lossy().contains("libc")));
    }
}
