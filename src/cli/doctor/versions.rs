//! Versions of this build, the system, Python packages, accelerators and their plugins.

use std::path::Path;

use super::check::Check;
use super::host::Host;
use super::python;
use crate::cli::format::plural;
use crate::cli::version::features;

pub(super) fn checks(host: &Host) -> Vec<Check> {
    let mut checks = vec![build(), system(host)];
    let python = python::packages();
    checks.extend(python.as_ref().map(python::Packages::check));
    checks.extend(devices(host));
    checks.extend(plugins(python.as_ref()));
    checks
}

fn build() -> Check {
    let (version, without) = (env!("CARGO_PKG_VERSION"), features(false));
    let build = if cfg!(debug_assertions) { ", not optimised" } else { "" };
    let lacks = if without.is_empty() { "every feature".to_owned() } else { format!("without {}", without.join(" ")) };
    Check::good("build", format!("{version}{build}, {lacks}"))
        .figure("version", version)
        .figure("features", features(true))
        .figure("without", without)
        .poor_if(
            cfg!(debug_assertions),
            "stages take many times as long as in an optimised build",
            "cargo build --release; of the Python package: maturin develop --release",
        )
}

fn system(host: &Host) -> Check {
    let kernel = host.machine.text("/proc/sys/kernel/osrelease");
    let libc = super::libc::version();
    let container = host.container().map(|container| format!("{container:?}"));
    let parts = [
        Some(if let Some(kernel) = &kernel { format!("Linux {kernel}") } else { std::env::consts::OS.to_owned() }),
        Some(std::env::consts::ARCH.to_owned()),
        libc.clone(),
        container.as_ref().map(|container| format!("in a container of {container}")),
    ];
    let found: Vec<String> = parts.into_iter().flatten().collect();
    Check::good("system", found.join(", "))
        .figure("kernel", kernel)
        .figure("libc", libc)
        .figure("container", container)
        .figure("architecture", std::env::consts::ARCH)
}

/// Checks the accelerators that the kernel reports.
fn devices(host: &Host) -> Option<Check> {
    let text = host.machine.text("/proc/driver/nvidia/version");
    // For example `NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu …`.
    let driver = text.as_deref().and_then(|text| {
        let is_version = |word: &&str| word.contains('.') && word.starts_with(|c: char| c.is_ascii_digit());
        text.lines().next()?.split_whitespace().find(is_version).map(str::to_owned)
    });
    let gpus = count(&host.machine.place("/proc/driver/nvidia/gpus"), |_| true);
    let tpus = count(&host.machine.place("/dev"), |name| name.starts_with("accel"));
    let mut found = Vec::new();
    if let Some(driver) = &driver {
        found.push(format!("{} with NVIDIA's driver {driver}", plural(gpus, "GPU")));
    }
    if tpus > 0 {
        found.push(plural(tpus, "TPU"));
    }
    let check = Check::good("accelerators", found.join(", "));
    (!found.is_empty()).then(|| check.figure("gpus", gpus).figure("tpus", tpus).figure("nvidia_driver", driver))
}

fn count(folder: &Path, is_one: impl Fn(&str) -> bool) -> u64 {
    let names = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
    names.filter(|name| name.to_str().is_some_and(&is_one)).count() as u64
}

/// Checks the installed plugins of accelerators.
#[cfg(feature = "pjrt")]
fn plugins(python: Option<&python::Packages>) -> Option<Check> {
    use crate::device::{discover, site_packages};
    let folders = if let Some(python) = python { python.site_packages.clone() } else { site_packages() };
    let found = discover(folders);
    let lines: Vec<String> =
        found.iter().map(|plugin| format!("{} ({})", plugin.name, plugin.path.display())).collect();
    let names: Vec<&str> = found.iter().map(|plugin| plugin.name.as_str()).collect();
    let missing: Vec<String> =
        found.iter().filter(|plugin| !plugin.path.exists()).map(|plugin| plugin.path.display().to_string()).collect();
    let text = if lines.is_empty() { "none found".to_owned() } else { lines.join(", ") };
    Some(Check::good("PJRT plugins", text).figure("names", names).poor_if(
        !missing.is_empty(),
        format!("there is no file {}", missing.join(", ")),
        "unset GRISTMILL_PJRT_PLUGIN PJRT_NAMES_AND_LIBRARY_PATHS TPU_LIBRARY_PATH, or name an existing file",
    ))
}

#[cfg(not(feature = "pjrt"))]
fn plugins(python: Option<&python::Packages>) -> Option<Check> {
    let python = python?;
    let found = if python.plugins.is_empty() { "none found".to_owned() } else { python.plugins.join(", ") };
    Some(Check::good("PJRT plugins", found).figure("names", python.plugins.clone()))
}

#[cfg(test)]
mod tests {
    use super::super::host::tests::host;
    use super::*;

    #[test]
    fn the_system_says_its_kernel_and_its_container() {
        let (_folder, host) = host(&[("/proc/sys/kernel/osrelease", "6.1.0-9\n"), ("/.dockerenv", "")]);
        let check = system(&host);
        assert!(check.found.starts_with("Linux 6.1.0-9, ") && check.found.ends_with("in a container of Docker"));
        assert_eq!(check.figures["kernel"], "6.1.0-9");
    }

    #[test]
    fn accelerators_are_counted() {
        let version = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb 22 01:44:30 UTC 2024\nGCC version: 12.2.0\n";
        let (_folder, gpus) = host(&[
            ("/proc/driver/nvidia/version", version),
            ("/proc/driver/nvidia/gpus/0000:01:00.0/information", ""),
            ("/proc/driver/nvidia/gpus/0000:02:00.0/information", ""),
        ]);
        assert_eq!(devices(&gpus).unwrap().found, "2 GPUs with NVIDIA's driver 550.54.14");
        let (_folder, tpus) = host(&[("/dev/accel0", ""), ("/dev/null", "")]);
        assert_eq!(devices(&tpus).unwrap().found, "1 TPU");
        assert_eq!(devices(&host(&[]).1), None);
    }
}
