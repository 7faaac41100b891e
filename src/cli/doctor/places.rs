//! File systems that a pipeline reads from and writes to.

use std::path::{Path, PathBuf};

use super::check::Check;
use super::host::{Container, Host};
use crate::cli::format::{bytes, plural};
use crate::machine::Mount;
use crate::spec::Pipeline;
use crate::{Error, Result};

/// Places that a pipeline reads and writes.
#[derive(Default)]
pub(super) struct Places {
    /// Local files and folders, absolute and without links. `objects` contains URLs.
    pub(super) files: Vec<PathBuf>,
    pub(super) objects: Vec<PathBuf>,
    /// Whether the records are read in a random order.
    pub(super) shuffles: bool,
    /// Folders that the pipeline writes to, and the maximum size of a cache there; 0 for checkpoints.
    pub(super) folders: Vec<(PathBuf, u64)>,
}

impl Places {
    /// Returns the places of a pipeline file, without opening its data.
    ///
    /// # Errors
    /// Errors of the file; an error if a pattern matches nothing.
    pub(super) fn of(pipeline: &Path) -> Result<Self> {
        let pipeline = Pipeline::from_file(pipeline)?;
        let outline = pipeline.outline()?;
        let mut found = Self { shuffles: outline.shuffles, ..Self::default() };
        for place in outline.places {
            let is_object = place.is_object();
            let path = place.into_path();
            if is_object {
                found.objects.push(path);
                continue;
            }
            let files = crate::spec::Data::find(path.as_path()).unwrap_or_else(|_| vec![path]);
            found.files.extend(files.iter().filter_map(|file| file.canonicalize().ok()));
        }
        let settings = pipeline.settings();
        let folder = |written: &Path| nearest(&pipeline.folder().join(written));
        if let Some(checkpoint) = &settings.checkpoint {
            found.folders.push((folder(&checkpoint.folder)?, 0));
        }
        if let Some((cache, most)) = settings.store.as_ref().and_then(|store| store.cache()) {
            found.folders.push((folder(cache)?, most));
        }
        Ok(found)
    }

    pub(super) fn checks(&self, host: &Host) -> Vec<Check> {
        let mut mounts: Vec<(Mount, Vec<&Path>)> = Vec::new();
        for file in &self.files {
            let Some(mount) = host.machine.mount_of(file) else { continue };
            match mounts.iter_mut().find(|(known, _)| *known == mount) {
                Some((_, files)) => files.push(file),
                None => mounts.push((mount, vec![file])),
            }
        }
        let mut checks: Vec<Check> = mounts.iter().map(|(mount, files)| self.read(host, mount, files)).collect();
        checks.extend(self.of_stores());
        checks.extend(self.folders.iter().map(|(folder, most)| written(host, folder, *most)));
        checks
    }

    /// Checks the files of a pipeline in one file system.
    fn read(&self, host: &Host, mount: &Mount, files: &[&Path]) -> Check {
        let kind = Kind::of(mount);
        // Disks of virtual machines report that they rotate even if they do not.
        let is_virtual = ["/dev/vd", "/dev/xvd"].iter().any(|disk| mount.source.starts_with(disk));
        let turns = host.machine.turns(mount).filter(|_| !is_virtual);
        let folder = common(files);
        let on = match kind {
            Kind::Local => format!("{} on {}", mount.kind, mount.source),
            Kind::Network => format!("{} of {}, over the network", mount.kind, mount.source),
            Kind::Process => format!("{} of {}, through a process", mount.kind, mount.source),
            Kind::Layers => "the layers of an image".to_owned(),
            Kind::Memory => format!("{}, which is memory", mount.kind),
        };
        let disk = if turns == Some(true) { ", a disk that turns" } else { "" };
        let found = format!("{} in {}: {on}{disk}", plural(files.len() as u64, "file"), folder.display());
        let copy = format!("rsync -a {}/ /A/LOCAL/DISK/", crate::cli::output::shell_word(&folder));
        Check::good("files", found)
            .figure("files", files.len())
            .figure("folder", folder.display().to_string())
            .figure("mount", mount.point.display().to_string())
            .figure("file_system", mount.kind.clone())
            .figure("network", kind == Kind::Network)
            .figure("turns", turns)
            .poor_if(
                kind == Kind::Process,
                "each read passes through another process, which may read whole blocks for each record",
                "the URLs of the objects themselves in the pipeline: s3://, gs://, az://, https://, hf://",
            )
            .poor_if(
                kind == Kind::Network && self.shuffles,
                "in a shuffled order each record is a request to the server, and workers wait for it",
                copy.clone(),
            )
            .poor_if(
                turns == Some(true) && self.shuffles,
                "in a shuffled order each record moves the head of the disk, a hundred times a second",
                format!("window_shuffle after to_iter instead of shuffle; or {copy}"),
            )
    }

    fn of_stores(&self) -> Option<Check> {
        let first = self.objects.first()?;
        let more = match self.objects.len() {
            1 => String::new(),
            count => format!(" and {} more", count - 1),
        };
        Some(Check::good("stores", format!("{}{more}", first.display())).figure("urls", self.objects.len()))
    }
}

/// Checks an existing folder to which a pipeline writes up to `most` bytes.
fn written(host: &Host, folder: &Path, most: u64) -> Check {
    let what = folder.display().to_string();
    if let Err(error) = crate::store::check_writable(&folder.join("doctor")) {
        return Check::bad(what, &error);
    }
    let mut check = Check::good(what, "can be written to");
    let real = folder.canonicalize().ok();
    if let Some(mount) = real.and_then(|folder| host.machine.mount_of(&folder)) {
        let lost = match (Kind::of(&mount), host.container()) {
            (Kind::Memory, _) => Some("data in memory is lost with the machine, and takes memory from everything else"),
            (Kind::Layers, Some(_)) => Some("data in the container is lost with it"),
            _ => None,
        };
        let mend = match host.container() {
            Some(Container::Kubernetes) => "a persistent volume, mounted there".to_owned(),
            Some(_) => format!("docker run -v /A/FOLDER/OF/THE/HOST:{} …", folder.display()),
            None => "a folder on a disk".to_owned(),
        };
        check = check.figure("file_system", mount.kind.clone()).poor_if(lost.is_some(), lost.unwrap_or_default(), mend);
    }
    let Some(space) = (host.space)(folder) else { return check };
    check.found += &format!(", {} free", bytes(space.free_bytes));
    let is_full = space.free_bytes < most.max(64 << 20);
    let hurts = match most {
        0 => "states do not fit".to_owned(),
        most => format!("the cache may come to {}", bytes(most)),
    };
    let mend = format!("df -h {}; and a lower store.cache_size, if it is the cache", folder.display());
    check.figure("free_bytes", space.free_bytes).poor_if(is_full, hurts, mend)
}

/// Checks a folder that the user names.
pub(super) fn writable(host: &Host, folder: &Path) -> Check {
    Check { what: folder.display().to_string(), ..written(host, folder, 0) }
}

/// Returns the first existing folder among `path` and its ancestors. Writing creates the missing folders.
fn nearest(path: &Path) -> Result<PathBuf> {
    let found = path.ancestors().find(|folder| folder.is_dir()).map(Path::to_owned);
    let here = || std::env::current_dir().map_err(|e| Error::io(e, path));
    found.filter(|folder| !folder.as_os_str().is_empty()).map_or_else(here, Ok)
}

/// Returns the deepest folder that contains all of the files.
fn common(files: &[&Path]) -> PathBuf {
    let folder = |file: &Path| if file.is_dir() { file.to_owned() } else { file.parent().unwrap_or(file).to_owned() };
    let Some((first, rest)) = files.split_first() else { return PathBuf::new() };
    let first = folder(first);
    let is_over = |over: &&Path| rest.iter().all(|file| file.starts_with(over));
    first.ancestors().find(is_over).unwrap_or(Path::new("/")).to_owned()
}

/// Storage that backs a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Local,
    Network,
    /// A process of this machine serves the files.
    Process,
    Layers,
    Memory,
}

impl Kind {
    fn of(mount: &Mount) -> Self {
        const NETWORK: [&str; 16] = [
            "9p",
            "afs",
            "beegfs",
            "ceph",
            "cifs",
            "fuse.ceph",
            "fuse.glusterfs",
            "fuse.juicefs",
            "gfs2",
            "glusterfs",
            "gpfs",
            "lustre",
            "nfs",
            "nfs4",
            "smb3",
            "wekafs",
        ];
        match mount.kind.as_str() {
            kind if NETWORK.contains(&kind) => Self::Network,
            kind if kind == "fuse" || kind.starts_with("fuse.") => Self::Process,
            "overlay" | "aufs" => Self::Layers,
            "tmpfs" | "ramfs" => Self::Memory,
            _ => Self::Local,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::Health;
    use super::super::host::tests::host;
    use super::*;

    const MOUNTS: &str = "27 1 254:0 / / rw - overlay overlay rw\n\
        40 27 0:45 / /nfs rw - nfs4 server:/data rw\n41 27 0:46 / /bucket rw - fuse.gcsfuse bucket rw\n\
        42 27 8:1 / /disk rw - ext4 /dev/sda1 rw\n43 27 254:9 / /virtual rw - ext4 /dev/vdb rw\n";

    fn files(paths: &[&str], shuffles: bool) -> Vec<Check> {
        let turns = [("/sys/dev/block/8:1/queue/rotational", "1"), ("/sys/dev/block/254:9/queue/rotational", "1")];
        let (_folder, host) = host(&[("/proc/self/mountinfo", MOUNTS), turns[0], turns[1]]);
        let files = paths.iter().map(PathBuf::from).collect();
        Places { files, shuffles, ..Places::default() }.checks(&host)
    }

    #[test]
    fn file_systems_hurt_by_how_they_are_read() {
        for (path, shuffles, health, found) in [
            ("/nfs/a/1.jsonl", true, Health::Poor, "1 file in /nfs/a: nfs4 of server:/data, over the network"),
            ("/nfs/a/1.jsonl", false, Health::Good, "1 file in /nfs/a: nfs4 of server:/data, over the network"),
            ("/bucket/1", false, Health::Poor, "1 file in /bucket: fuse.gcsfuse of bucket, through a process"),
            ("/disk/1", true, Health::Poor, "1 file in /disk: ext4 on /dev/sda1, a disk that turns"),
            ("/virtual/1", true, Health::Good, "1 file in /virtual: ext4 on /dev/vdb"),
            ("/data/1", true, Health::Good, "1 file in /data: the layers of an image"),
        ] {
            let checks = files(&[path], shuffles);
            assert_eq!((checks[0].health, checks[0].found.as_str()), (health, found));
        }
        let network = &files(&["/nfs/a/1", "/nfs/a/b/2", "/nfs/a/3"], true)[0];
        assert_eq!(network.mend.as_deref(), Some("rsync -a /nfs/a/ /A/LOCAL/DISK/"));
        assert_eq!((&network.figures["files"], &network.figures["network"]), (&3.into(), &true.into()));
    }

    #[test]
    fn files_are_told_once_for_each_file_system() {
        assert_eq!(files(&["/nfs/1", "/disk/2", "/nfs/3"], true).len(), 2);
    }

    #[test]
    fn what_is_written_must_fit_and_stay() {
        let folder = tempfile::tempdir().unwrap();
        let mounts = "27 1 254:0 / / rw - overlay overlay rw\n";
        let (_root, host) = host(&[("/proc/self/mountinfo", mounts), ("/.dockerenv", "")]);
        let lost = written(&host, folder.path(), 0);
        assert_eq!(lost.hurts.as_deref(), Some("data in the container is lost with it"));
        assert_eq!(lost.found, "can be written to, 64 MiB free");
        let (_root, plain) = super::super::host::tests::host(&[]);
        assert_eq!(written(&plain, folder.path(), 0).health, Health::Good);
        assert_eq!(written(&plain, folder.path(), 1 << 30).hurts.as_deref(), Some("the cache may come to 1 GiB"));
        assert_eq!(written(&plain, &folder.path().join("none"), 0).health, Health::Bad);
    }
}
