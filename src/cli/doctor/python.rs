//! The Python interpreter that runs this command, if there is an interpreter.

#[cfg(feature = "pjrt")]
use std::path::PathBuf;
use std::sync::OnceLock;

use super::check::Check;

/// Python interpreter and its packages.
#[derive(Clone, Debug, Default)]
pub(crate) struct Packages {
    /// Version of the interpreter.
    pub(crate) python: String,
    /// Names and versions of packages that share a process with gristmill; `None` for a package that is not installed.
    pub(crate) versions: Vec<(String, Option<String>)>,
    /// Plugins that JAX would load.
    #[cfg_attr(feature = "pjrt", allow(dead_code, reason = "that build looks for the libraries themselves"))]
    pub(crate) plugins: Vec<String>,
    /// Folders of the installed packages.
    #[cfg(feature = "pjrt")]
    pub(crate) site_packages: Vec<PathBuf>,
}

static ASK: OnceLock<fn() -> Packages> = OnceLock::new();

/// Registers `ask`, which returns the packages on demand.
#[cfg(feature = "python")]
pub(crate) fn set_packages(ask: fn() -> Packages) {
    let _ = ASK.set(ask);
}

/// Returns the packages; `None` if no interpreter runs this command.
pub(super) fn packages() -> Option<Packages> {
    ASK.get().map(|ask| ask())
}

impl Packages {
    pub(super) fn check(&self) -> Check {
        let there = self.versions.iter().filter_map(|(name, version)| Some((name, version.as_ref()?)));
        let found: Vec<String> = std::iter::once(self.python.clone())
            .chain(there.map(|(name, version)| format!("{name} {version}")))
            .collect();
        let versions: serde_json::Map<String, serde_json::Value> =
            self.versions.iter().map(|(name, version)| (name.clone(), version.clone().into())).collect();
        Check::good("Python", found.join(", ")).figure("python", self.python.clone()).figure("packages", versions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_that_are_not_there_are_null() {
        let versions = vec![("numpy".to_owned(), Some("2.4.0".to_owned())), ("torch".to_owned(), None)];
        let check = Packages { python: "3.12.3".to_owned(), versions, ..Packages::default() }.check();
        assert_eq!(check.found, "3.12.3, numpy 2.4.0");
        assert_eq!(check.figures["packages"], serde_json::json!({"numpy": "2.4.0", "torch": null}));
    }
}
