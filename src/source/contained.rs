//! Third-party decoders on untrusted bytes: their panics become errors.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use crate::error::{Error, Result};

/// Runs `work`. Converts a panic into an error, and suppresses the output of the panic hook.
pub(crate) fn contained<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    let _quiet = Quiet::begin();
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let text = text.unwrap_or("(no message)");
        tracing::debug!("a decoder panicked: {text}");
        Err(Error::data(format!("the decoder gave up on damaged data: {text}")))
    })
}

/// Decompressed bytes that every buffer may claim, in addition to [`RATIO`] times its own size. Stops a small file from
/// causing a large allocation.
const SMALL: u64 = 32 << 20;
/// Maximum number of decompressed bytes for each compressed byte, beyond [`SMALL`].
const RATIO: u64 = 1000;

/// Checks the claimed decompressed size of `packed` bytes, before a decoder allocates it.
///
/// # Errors
/// [`ErrorKind::Data`](crate::ErrorKind::Data) if the claim exceeds 32 MiB plus 1000 times the compressed size.
pub(crate) fn check_claim(packed: u64, unpacked: u64) -> Result<()> {
    if unpacked <= SMALL.saturating_add(RATIO.saturating_mul(packed)) {
        return Ok(());
    }
    Err(Error::data(format!("{packed} compressed bytes claim to hold {unpacked}, more than {RATIO} times as many")))
}

thread_local! {
    /// Number of active calls of [`contained`] on this thread.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// Guard that suppresses the output of this thread's panics until it is dropped.
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

/// Wraps the current panic hook, once. The new hook forwards every panic, except panics that [`contained`] converts
/// into errors. A hook that the program sets later replaces both hooks, as usual, and receives all panics.
fn install() {
    static ONCE: Once = Once::new();
    // A panicking thread cannot change hooks.
    if ONCE.is_completed() || std::thread::panicking() {
        return;
    }
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            // A thread that is ending has already destroyed its depth.
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

    /// Part of the test below. Runs in a separate process, because hooks belong to the whole process.
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
        // Panics outside of `contained` are reported as usual.
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
