//! The stub plugin, compiled on first use. Tests outside the crate include this file, too.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::device::Plugin;

/// API version of the stub.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stub {
    Today,
    /// The oldest supported version.
    #[allow(dead_code, reason = "not every test asks for it")]
    Oldest,
}

pub(super) fn plugin(stub: Stub) -> Plugin {
    static TODAY: OnceLock<PathBuf> = OnceLock::new();
    static OLDEST: OnceLock<PathBuf> = OnceLock::new();
    let path = match stub {
        Stub::Today => TODAY.get_or_init(|| compile("today", &[])),
        Stub::Oldest => OLDEST.get_or_init(|| compile("oldest", &["--cfg", "old"])),
    };
    Plugin::load(path).unwrap()
}

/// Compiles the stub next to this test's binary. The file name contains the process id, because other processes may
/// compile it at once.
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
