//! Control groups made for a test: what the kernel itself counts and limits.

use std::path::{Path, PathBuf};

/// A new group that counts memory, of either version. Dropping it removes it, once its processes are gone.
pub(crate) struct Group {
    path: PathBuf,
    names: Names,
}

/// The files of a version.
struct Names {
    peak: &'static str,
    limit: &'static str,
    swap_limit: &'static str,
}

const V1: Names = Names {
    peak: "memory.max_usage_in_bytes",
    limit: "memory.limit_in_bytes",
    swap_limit: "memory.memsw.limit_in_bytes",
};
const V2: Names = Names { peak: "memory.peak", limit: "memory.max", swap_limit: "memory.swap.max" };

impl Group {
    /// A group beside or in that of this process, or why there can be none.
    pub(crate) fn new(name: &str) -> Result<Self, String> {
        let name = format!("gristmill-{name}-{}", std::process::id());
        let mut refused = vec!["this process is in no memory control group".to_owned()];
        for (parent, names) in parents() {
            let path = parent.join(&name);
            if let Err(e) = std::fs::create_dir(&path) {
                refused.push(format!("{}: {e}", path.display()));
                continue;
            }
            let group = Self { path, names };
            if group.path.join(group.names.peak).exists() {
                return Ok(group);
            }
            refused.push(format!("{} does not count memory", group.path.display()));
        }
        Err(refused.pop().unwrap_or_default())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// A program and its arguments that run `program` in this group.
    #[allow(dead_code, reason = "not every test that includes this needs it")]
    pub(crate) fn command(&self, program: &Path) -> (&'static str, Vec<String>) {
        let script = r#"echo $$ > "$0"/cgroup.procs && exec "$1""#;
        let args = ["-c", script, &self.path.display().to_string(), &program.display().to_string()];
        ("/bin/sh", args.map(str::to_owned).to_vec())
    }

    /// The most memory that it ever had, kernel memory (page tables, sockets, stacks of threads) too.
    #[allow(dead_code, reason = "not every test that includes this needs it")]
    pub(crate) fn peak(&self) -> u64 {
        self.read(self.names.peak).and_then(|text| text.trim().parse().ok()).unwrap_or(0)
    }

    /// Kernel memory: the most there ever was, or where that is not told, what there is now.
    #[allow(dead_code, reason = "not every test that includes this needs it")]
    pub(crate) fn kernel(&self) -> u64 {
        let most = self.read("memory.kmem.max_usage_in_bytes").and_then(|text| text.trim().parse().ok());
        let stat = self.read("memory.stat").unwrap_or_default();
        let now = || stat.lines().find_map(|line| line.strip_prefix("kernel ")?.trim().parse().ok());
        most.or_else(now).unwrap_or(0)
    }

    /// From now on its processes have so many bytes together.
    #[allow(dead_code, reason = "not every test that includes this needs it")]
    pub(crate) fn limit(&self, bytes: u64) -> std::io::Result<()> {
        std::fs::write(self.path.join(self.names.limit), bytes.to_string())?;
        // Where there is no swap, there is nothing to forbid.
        let swap = if self.names.swap_limit == V1.swap_limit { bytes } else { 0 };
        let _ = std::fs::write(self.path.join(self.names.swap_limit), swap.to_string());
        Ok(())
    }

    /// Moves this process into it; dropping what this returns moves it back.
    #[allow(dead_code, reason = "not every test that includes this needs it")]
    pub(crate) fn enter(&self) -> std::io::Result<Inside<'_>> {
        let before = self.path.parent().expect("a group that was made has a parent").to_owned();
        std::fs::write(self.path.join("cgroup.procs"), std::process::id().to_string())?;
        Ok(Inside { before, _group: self })
    }

    fn read(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.path.join(name)).ok()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The kernel takes a moment to let go of processes that have ended.
        for _ in 0..200 {
            if std::fs::remove_dir(&self.path).is_ok() || !self.path.exists() {
                return;
            }
            // Nothing tells when the last process has left the group.
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

/// This process is in a group.
pub(crate) struct Inside<'a> {
    before: PathBuf,
    _group: &'a Group,
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        let _ = std::fs::write(self.before.join("cgroup.procs"), std::process::id().to_string());
    }
}

/// Groups in which one can be made: that of this process, and (of version 2, where a group with processes has no groups
/// that count) the one around it.
fn parents() -> Vec<(PathBuf, Names)> {
    let text = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mut parents = Vec::new();
    for line in text.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next()) else { continue };
        let path = path.trim_start_matches('/');
        if controllers.split(',').any(|name| name == "memory") {
            parents.push((Path::new("/sys/fs/cgroup/memory").join(path), V1));
        } else if controllers.is_empty() {
            let own = Path::new("/sys/fs/cgroup").join(path);
            let around = own.parent().filter(|around| around.starts_with("/sys/fs/cgroup")).map(Path::to_owned);
            parents.extend([Some(own), around].into_iter().flatten().map(|path| (path, V2)));
        }
    }
    // Where both are there, memory is version 1's.
    parents.sort_by_key(|(_, names)| names.peak != V1.peak);
    parents.into_iter().filter(|(path, _)| path.join("cgroup.procs").exists()).collect()
}
