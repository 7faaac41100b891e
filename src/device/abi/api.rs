//! The function table of a plugin, and calls through this table.
#![expect(unsafe_code, reason = "functions of the plugin are called through a table, by their offset")]

use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;

use bytemuck::Zeroable;

use super::args::*;
use super::types::RawError;
use crate::error::{Error, ErrorKind, Result};
use crate::fork::Origin;

/// Smallest supported minor version. Since then, the table has grown only at its end.
const NEEDED_MINOR: i32 = 57;

/// The head of the table, followed by function pointers.
#[repr(C)]
pub(in crate::device) struct Table {
    struct_size: usize,
    extensions: *mut c_void,
    version_size: usize,
    version_extensions: *mut c_void,
    major: i32,
    minor: i32,
}

/// The checked table of a plugin, and the plugin's path. The table lives until the process ends.
pub(in crate::device) struct Api {
    table: NonNull<Table>,
    path: PathBuf,
    major: i32,
    minor: i32,
    /// The process that loaded the plugin. The plugin depends on its threads, so a fork calls none of its functions.
    origin: Origin,
}

// SAFETY: a table is constant once returned, and plugins accept calls from any thread, as JAX requires.
unsafe impl Send for Api {}
// SAFETY: as above.
unsafe impl Sync for Api {}

/// Arguments followed by zeroed room for the fields of later versions. Plugins refuse structs that are shorter than
/// their own and accept longer structs.
#[repr(C)]
#[derive(Clone, Copy)]
struct Roomy<A> {
    args: A,
    room: [usize; 8],
}

type Function = unsafe extern "C" fn(*mut c_void) -> *mut RawError;
type Silent = unsafe extern "C" fn(*mut c_void);

impl Api {
    /// Checks the version of `table`.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] for a major version other than 0 or a minor version below [`NEEDED_MINOR`].
    ///
    /// # Safety
    /// `table` must come from a plugin's `GetPjrtApi`, and the plugin must stay loaded until the process ends.
    pub(in crate::device) unsafe fn new(table: NonNull<c_void>, path: &Path) -> Result<Self> {
        let table = table.cast::<Table>();
        // SAFETY: all versions begin with these fields, and the caller guarantees a table of a plugin.
        let Table { major, minor, .. } = unsafe { table.read() };
        if major != 0 || minor < NEEDED_MINOR {
            let message = format!("PJRT API {major}.{minor}, and 0.{NEEDED_MINOR} or a later 0.x is needed");
            return Err(Error::unsupported(message).path(path).help("install a newer version of the plugin"));
        }
        Ok(Self { table, path: path.to_owned(), major, minor, origin: Origin::here() })
    }

    pub(in crate::device) fn path(&self) -> &Path {
        &self.path
    }

    pub(in crate::device) fn version(&self) -> (i32, i32) {
        (self.major, self.minor)
    }

    /// Returns true if `table` is the table of this plugin.
    pub(in crate::device) fn is(&self, table: NonNull<c_void>) -> bool {
        self.table == table.cast()
    }

    /// Checks that this process loaded the plugin and is not a fork of the process that did.
    ///
    /// # Errors
    /// [`ErrorKind::Worker`] in a fork.
    pub(in crate::device) fn check_process(&self) -> Result<()> {
        if self.origin.is_here() { Ok(()) } else { Err(self.elsewhere()) }
    }

    #[cold]
    fn elsewhere(&self) -> Error {
        let help = "no plugin works in a fork: start the process with `spawn` or `forkserver`, or use devices in the parent alone";
        self.origin.other("this PJRT plugin").path(&self.path).help(help)
    }

    /// Returns true if the plugin has the function that takes these arguments.
    pub(in crate::device) fn has<A: Args>(&self) -> bool {
        self.entry::<A>().is_some()
    }

    /// Returns the function that takes these arguments; `None` if the table ends before its entry or the entry is null.
    fn entry<A: Args>(&self) -> Option<NonNull<c_void>> {
        let at = size_of::<Table>() + A::INDEX * size_of::<usize>();
        // SAFETY: the table begins with its size.
        let size = unsafe { self.table.as_ref() }.struct_size;
        if at + size_of::<usize>() > size {
            return None;
        }
        // SAFETY: the entry is inside the table and contains a pointer.
        NonNull::new(unsafe { self.table.cast::<u8>().add(at).cast::<*mut c_void>().read() })
    }

    /// Calls the function that takes `args` and returns the updated arguments. In a fork, fails without a call.
    ///
    /// # Safety
    /// All memory that `args` point to must meet the requirements of this function in the header, including its
    /// lifetime.
    pub(in crate::device) unsafe fn call<A: Args>(&self, args: A) -> Result<A, Failure> {
        if !self.origin.is_here() {
            return Err(Failure::of_fork::<A>());
        }
        let Some(entry) = self.entry::<A>() else { return Err(Failure::missing::<A>()) };
        // SAFETY: the entry at this index is a function of this type.
        let function = unsafe { std::mem::transmute::<NonNull<c_void>, Function>(entry) };
        let mut args = roomy(args);
        // SAFETY: the arguments have this function's layout and the declared size. The caller guarantees the memory
        // they point to.
        let error = unsafe { function((&raw mut args).cast()) };
        match NonNull::new(error) {
            None => Ok(args.args),
            // SAFETY: the function returned the error, which the caller owns.
            Some(error) => Err(unsafe { self.failure(A::NAME, error) }),
        }
    }

    /// Works like [`call`](Self::call), for a function without a return value.
    ///
    /// # Safety
    /// The requirements of `call` apply.
    unsafe fn call_silent<A: Args>(&self, args: A) -> A {
        let Some(entry) = self.entry::<A>() else { return args };
        // SAFETY: the entry at this index is a function of this type.
        let function = unsafe { std::mem::transmute::<NonNull<c_void>, Silent>(entry) };
        let mut args = roomy(args);
        // SAFETY: as in `call`.
        unsafe { function((&raw mut args).cast()) };
        args.args
    }

    /// Reads and frees `error`.
    ///
    /// # Safety
    /// `error` must be an error of this plugin that the caller owns and does not use again.
    #[cold]
    pub(in crate::device) unsafe fn failure(&self, call: &'static str, error: NonNull<RawError>) -> Failure {
        let error = error.as_ptr();
        // SAFETY: the error lives until it is freed below.
        let said = unsafe { self.call_silent(ErrorMessage { error, ..Zeroable::zeroed() }) };
        // SAFETY: the plugin wrote the address and length of the message, which lives as long as the error.
        let message = one_line(&unsafe { text(said.message, said.message_len) });
        // SAFETY: as above.
        let code = unsafe { self.call(ErrorGetCode { error, ..Zeroable::zeroed() }) }.map_or(UNKNOWN, |args| args.code);
        // SAFETY: the error is not used again.
        unsafe { self.call_silent(ErrorDestroy { error, ..Zeroable::zeroed() }) };
        Failure { call, code, message, is_of_fork: false }
    }

    /// Converts `failure` to an error that names the plugin, its version and the call; in a fork, the two processes.
    #[cold]
    pub(in crate::device) fn error(&self, failure: &Failure) -> Error {
        if failure.is_of_fork {
            return self.elsewhere();
        }
        let message = format!("{} of PJRT API {}.{}: {failure}", failure.call, self.major, self.minor);
        Error::new(ErrorKind::Device, message).path(&self.path)
    }
}

debug_as!(Api, |self, f| write!(f, "{}, PJRT API {}.{}", self.path.display(), self.major, self.minor));

fn roomy<A: Args>(mut args: A) -> Roomy<A> {
    args.set_size(size_of::<Roomy<A>>());
    Roomy { args, room: [0; 8] }
}

/// Copies a text of the plugin.
///
/// # Safety
/// `start` must be null or valid for reads of `len` bytes.
pub(in crate::device) unsafe fn text(start: *const u8, len: usize) -> String {
    if start.is_null() {
        return String::new();
    }
    // SAFETY: the caller guarantees that `len` bytes are readable.
    String::from_utf8_lossy(unsafe { std::slice::from_raw_parts(start, len) }).trim_end().to_owned()
}

/// Joins a message to a single line, without a trailing list of locations in XLA's code.
fn one_line(message: &str) -> String {
    let lines = message.lines().map(str::trim).take_while(|line| !line.starts_with("==="));
    lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
}

const UNKNOWN: i32 = 2;
const FAILED_PRECONDITION: i32 = 9;
const UNIMPLEMENTED: i32 = 12;

/// The error of a failed call.
#[derive(Clone, Debug)]
pub(in crate::device) struct Failure {
    call: &'static str,
    code: i32,
    message: String,
    /// Whether the call was skipped because another process loaded the plugin.
    is_of_fork: bool,
}

impl Failure {
    #[cold]
    fn missing<A: Args>() -> Self {
        let message = "the plugin does not have this function".into();
        Self { call: A::NAME, code: UNIMPLEMENTED, message, is_of_fork: false }
    }

    #[cold]
    fn of_fork<A: Args>() -> Self {
        Self { call: A::NAME, code: FAILED_PRECONDITION, message: "this process is a fork".into(), is_of_fork: true }
    }

    /// Returns true if the plugin does not implement the function.
    pub(in crate::device) fn is_unimplemented(&self) -> bool {
        self.code == UNIMPLEMENTED
    }
}

display_as!(Failure, |self, f| {
    // The codes of absl::Status.
    const NAMES: [&str; 17] = [
        "ok",
        "cancelled",
        "unknown",
        "invalid argument",
        "deadline exceeded",
        "not found",
        "already exists",
        "permission denied",
        "resource exhausted",
        "failed precondition",
        "aborted",
        "out of range",
        "unimplemented",
        "internal",
        "unavailable",
        "data loss",
        "unauthenticated",
    ];
    let name = usize::try_from(self.code).ok().and_then(|code| NAMES.get(code).copied()).unwrap_or("unknown code");
    write!(f, "{} ({name}, {})", self.message, self.code)
});

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a table with `functions` empty entries.
    fn table(major: i32, minor: i32, functions: usize) -> NonNull<c_void> {
        let mut words = vec![0u64; size_of::<Table>() / 8 + functions];
        words[0] = 8 * words.len() as u64;
        words[4] = u64::from(major as u32) | u64::from(minor as u32) << 32;
        NonNull::from(words.leak()).cast()
    }

    #[test]
    fn other_versions_are_refused_by_name() {
        for (major, minor, works) in [(0, 57, true), (0, 115, true), (0, 56, false), (1, 60, false)] {
            // SAFETY: the table has the declared size and is leaked.
            let api = unsafe { Api::new(table(major, minor, 0), Path::new("a.so")) };
            assert_eq!(api.is_ok(), works);
            if let Err(error) = api {
                assert_eq!(error.kind(), ErrorKind::Unsupported);
                let expected = format!("a.so: PJRT API {major}.{minor}, and 0.57 or a later 0.x is needed");
                assert_eq!(error.to_string(), expected);
            }
        }
    }

    #[test]
    fn messages_are_one_line() {
        let said = "No device:\n  looked for one\n\n=== Source Location Trace: ===\n./xla/util.h:304\n";
        assert_eq!(one_line(said), "No device:; looked for one");
        assert_eq!(one_line(""), "");
    }

    #[test]
    fn what_a_table_lacks_is_not_called() {
        // An index past the end of the table, and an empty entry.
        for functions in [110, 118] {
            // SAFETY: the table has the declared size and is leaked.
            let api = unsafe { Api::new(table(0, 60, functions), Path::new("a.so")) }.unwrap();
            assert!(!api.has::<ClientDmaMap>());
            // SAFETY: no function is called.
            let failure = unsafe { api.call(ClientDmaMap::zeroed()) }.err().unwrap();
            assert!(failure.is_unimplemented());
            let said = "a.so: PJRT_Client_DmaMap of PJRT API 0.60: the plugin does not have this function \
                        (unimplemented, 12)";
            assert_eq!(api.error(&failure).to_string(), said);
        }
    }
}
