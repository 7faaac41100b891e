//! Discovery of plugins installed by pip or named in the environment.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

/// A possible plugin, found by file name only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundPlugin {
    /// The name of the plugin, from the environment or its package.
    pub name: String,
    /// The path of the library, for [`Plugin::load`](super::Plugin::load).
    pub path: PathBuf,
}

/// Returns the plugins named in the environment, then the plugins of packages in `site_packages` folders. Packages are
/// ordered by folder, then by name. Each path is listed once.
///
/// Environment: `GRISTMILL_PJRT_PLUGIN`, paths separated as in `PATH`; `PJRT_NAMES_AND_LIBRARY_PATHS`, JAX's
/// `name:path,name:path`; `TPU_LIBRARY_PATH`. Packages: the contents of the namespace packages `jax_plugins` and
/// `xla_plugins`, `libtpu`, and folders with `pjrt` in their name.
/// ```
/// for plugin in gristmill::device::discover(gristmill::device::site_packages()) {
///     println!("{} {}", plugin.name, plugin.path.display());
/// }
/// ```
pub fn discover(site_packages: impl IntoIterator<Item = impl AsRef<Path>>) -> Vec<FoundPlugin> {
    let mut found = in_environment(|name| std::env::var_os(name));
    for folder in site_packages {
        in_packages(folder.as_ref(), &mut found);
    }
    let mut unique: Vec<FoundPlugin> = Vec::with_capacity(found.len());
    for plugin in found {
        if unique.iter().all(|other| other.path != plugin.path) {
            unique.push(plugin);
        }
    }
    unique
}

/// Returns the `site-packages` folders of the active virtual environment, Python's or Conda's.
pub fn site_packages() -> Vec<PathBuf> {
    let prefixes = ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().filter_map(std::env::var_os);
    prefixes.flat_map(|prefix| site_packages_of(Path::new(&prefix))).collect()
}

fn site_packages_of(prefix: &Path) -> Vec<PathBuf> {
    let pythons = entries(&prefix.join("lib")).into_iter().filter(|path| starts_with(path, "python"));
    pythons.map(|python| python.join("site-packages")).filter(|folder| folder.is_dir()).collect()
}

fn in_environment(variable: impl Fn(&str) -> Option<OsString>) -> Vec<FoundPlugin> {
    let mut found = Vec::new();
    if let Some(paths) = variable("GRISTMILL_PJRT_PLUGIN") {
        let paths = std::env::split_paths(&paths).filter(|path| !path.as_os_str().is_empty());
        found.extend(paths.map(|path| FoundPlugin { name: stem(&path), path }));
    }
    let named = variable("PJRT_NAMES_AND_LIBRARY_PATHS").and_then(|value| value.into_string().ok()).unwrap_or_default();
    found.extend(named.split(',').filter_map(|pair| {
        let (name, path) = pair.split_once(':')?;
        Some(FoundPlugin { name: name.to_owned(), path: path.into() })
    }));
    if let Some(path) = variable("TPU_LIBRARY_PATH").filter(|path| !path.is_empty()) {
        found.push(FoundPlugin { name: "tpu".into(), path: path.into() });
    }
    found
}

fn in_packages(site_packages: &Path, found: &mut Vec<FoundPlugin>) {
    let packages = entries(site_packages)
        .into_iter()
        .filter(|path| path.is_dir() && path.extension().is_none_or(|ending| ending != "dist-info"));
    for package in packages {
        match package.file_name().and_then(OsStr::to_str).unwrap_or_default() {
            "jax_plugins" | "xla_plugins" => {
                entries(&package).iter().filter(|path| path.is_dir()).for_each(|folder| in_folder(folder, found));
            }
            "libtpu" => in_folder(&package, found),
            name if name.contains("pjrt") => in_folder(&package, found),
            _ => {}
        }
    }
}

/// Adds the plugins in `folder`. Filters by name, because packages also contain other libraries.
fn in_folder(folder: &Path, found: &mut Vec<FoundPlugin>) {
    let is_plugin = |path: &&PathBuf| {
        let name = stem(path);
        path.extension() == Some(OsStr::new(std::env::consts::DLL_EXTENSION))
            && ["pjrt", "plugin", "libtpu"].iter().any(|word| name.contains(word))
    };
    found.extend(
        entries(folder).iter().filter(is_plugin).map(|path| FoundPlugin { name: stem(folder), path: path.clone() }),
    );
}

/// Lists the entries of `folder`, sorted by name; empty if the folder cannot be read.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let read = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = read.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn starts_with(path: &Path, start: &str) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(start))
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_names_plugins() {
        let set = |name: &str| {
            let value = match name {
                "GRISTMILL_PJRT_PLUGIN" => "/a/one.so:/b/two.so",
                "PJRT_NAMES_AND_LIBRARY_PATHS" => "cpu:/c/three.so,,broken,x:/d/four.so",
                _ => return None,
            };
            Some(value.into())
        };
        let found = in_environment(set);
        let said: Vec<_> = found.iter().map(|plugin| (plugin.name.as_str(), plugin.path.to_str().unwrap())).collect();
        assert_eq!(said, [("one", "/a/one.so"), ("two", "/b/two.so"), ("cpu", "/c/three.so"), ("x", "/d/four.so")]);
        assert_eq!(in_environment(|_| None), []);
        let tpu = in_environment(|name| (name == "TPU_LIBRARY_PATH").then(|| "/t.so".into()));
        assert_eq!(tpu, [FoundPlugin { name: "tpu".into(), path: "/t.so".into() }]);
    }

    /// The files of the packages on PyPI.
    #[test]
    fn packages_bring_plugins() {
        let dir = tempfile::tempdir().unwrap();
        let packages = dir.path().join("lib/python3.12/site-packages");
        let files = [
            "jax_plugins/xla_cuda13/xla_cuda_plugin.so",
            "jax_plugins/xla_cuda13/_triton.so",
            "xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so",
            "xla_plugins/xla_cpu_pjrt/include/pjrt_c_api.h",
            "lammps_jax_pjrt_cpu/pjrt_c_api_cpu_plugin.so",
            "lammps_jax_pjrt_cpu-0.11.2.dist-info/RECORD",
            "libtpu/libtpu.so",
            "numpy/plugin.so",
        ];
        for file in files {
            let path = packages.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        assert_eq!(site_packages_of(dir.path()), vec![packages.clone()]);
        let mut found = Vec::new();
        in_packages(&packages, &mut found);
        let said: Vec<_> =
            found.iter().map(|plugin| (plugin.name.as_str(), plugin.path.strip_prefix(&packages).unwrap())).collect();
        let expected = [
            ("xla_cuda13", files[0]),
            ("lammps_jax_pjrt_cpu", files[4]),
            ("libtpu", files[6]),
            ("xla_cpu_pjrt", files[2]),
        ];
        assert_eq!(said, expected.map(|(name, path)| (name, Path::new(path))));
    }
}
