//! Foreign decoders on bytes of unknown quality: their panics become errors.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use crate::error::{Error, Result};

/// Runs `work`; a panic in it becomes an error, of which nothing is printed.
pub(crate) fn contained<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    let _quiet = Quiet::begin();
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let text = text.unwrap_or("(no message)");
        tracing::debug!("a decoder panicked: {text}");
        Err(Error::data(format!("the decoder gave up on damaged data: {text}")))
    })
}

/// Bytes that a buffer may hold beyond a multiple of its own: a small file must not ask for much memory.
#[cfg(feature = "columns")]
const SMALL: u64 = 32 << 20;
/// Bytes that one byte of a buffer may stand for.
#[cfg(feature = "columns")]
const RATIO: u64 = 1000;

/// Checks how many bytes `packed` bytes claim to be compressed from, before a decoder takes as much memory.
///
/// # Errors
/// [`ErrorKind::Data`](crate::ErrorKind::Data) for more than 32 MiB and a thousand times the compressed bytes.
#[cfg(feature = "columns")]
pub(crate) fn check_claim(packed: u64, unpacked: u64) -> Result<()> {
    if unpacked <= SMALL.saturating_add(RATIO.saturating_mul(packed)) {
        return Ok(());
    }
    Err(Error::data(format!("{packed} compressed bytes claim to hold {unpacked}, more than {RATIO} times as many")))
}

thread_local! {
    /// Number of calls of [`contained`] that this thread is in.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// Panics of this thread are errors, and not printed, for as long as this lives.
struct Quiet;

impl Quiet {
    fn begin() -> Self {
        install();
        DEPTH.set(DEPTH.get() + 1);
        Self
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}

/// Puts a hook in front of the one that is there, once: it passes on every panic but those that become errors. A hook that a program
/// sets later takes the place of both, as it always does, and hears of all.
fn install() {
    static ONCE: Once = Once::new();
    // Hooks cannot be changed by a thread that panics.
    if ONCE.is_completed() || std::thread::panicking() {
        return;
    }
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            // A thread that ends has no depth any more.
            if DEPTH.try_with(Cell::get).unwrap_or(0) == 0 {
                before(info);
            }
        }));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHILD: &str = "GRISTMILL_TEST_CONTAINED";

    /// Part that the test below runs in a process of its own, as hooks belong to all of a process.
    #[test]
    fn a_process_that_panics() {
        if std::env::var_os(CHILD).is_none() {
            return;
        }
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            eprintln!("the program's own hook");
            before(info);
        }));
        let error = contained(|| contained::<()>(|| panic!("inside {}", 1)).map_err(|e| e.and(", told"))).unwrap_err();
        assert_eq!(error.message(), "the decoder gave up on damaged data: inside 1, told");
        // Those that are nobody's errors are told as ever.
        assert!(catch_unwind(|| panic!("outside")).is_err());
        assert!(std::thread::spawn(|| panic!("elsewhere")).join().is_err());
    }

    #[test]
    fn a_panic_that_becomes_an_error_prints_nothing_and_others_print_as_before() {
        let me = std::env::current_exe().unwrap();
        let child = ["source::contained::tests::a_process_that_panics", "--exact", "--nocapture"];
        let output = std::process::Command::new(me).args(child).env(CHILD, "1").output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}");
        assert!(!text.contains("inside 1"), "{text}");
        assert_eq!(text.matches("the program's own hook").count(), 2, "{text}");
        assert!(text.contains("outside") && text.contains("elsewhere"), "{text}");
    }
}
