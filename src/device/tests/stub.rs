//! The stub, compiled when it is first needed.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::device::Plugin;

/// The stub of today's version.
pub(super) fn plugin() -> Plugin {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    Plugin::load(PATH.get_or_init(|| compile("new", &[]))).unwrap()
}

/// The stub of the oldest version that works.
pub(super) fn old_plugin() -> Plugin {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    Plugin::load(PATH.get_or_init(|| compile("old", &["--cfg", "old"]))).unwrap()
}

/// Compiles it beside this test's binary, for this process alone: others may be at the same.
fn compile(name: &str, flags: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pjrt_stub/lib.rs");
    let folder = std::env::current_exe().unwrap().with_file_name("pjrt_stub");
    let target = folder.join(format!("libpjrt_stub_{name}_{}.so", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut command = Command::new(&rustc);
    command.args(["--edition", "2024", "-O", "--crate-type", "cdylib", "--crate-name", "pjrt_stub", "-o"]);
    let output = command.arg(&target).args(flags).arg(source).output();
    let output = output.unwrap_or_else(|e| panic!("{} cannot be run: {e}", rustc.display()));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let kept = folder.join(format!("libpjrt_stub_{name}.so"));
    std::fs::rename(&target, &kept).unwrap();
    kept
}
