//! Mounted file systems, from `/proc/self/mountinfo`.

use std::path::{Path, PathBuf};

use super::Machine;

/// A mounted file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    /// Mount point, and the folder of the file system that is mounted there.
    pub(crate) point: PathBuf,
    pub(super) root: PathBuf,
    /// Type: `ext4`, `nfs4`, `fuse.gcsfuse`.
    pub(crate) kind: String,
    /// Source: a device, or a server and its folder.
    pub(crate) source: String,
    /// Device number, as in `8:1`. File systems without a device have numbers that begin with 0.
    pub(crate) device: String,
    /// Options of the mount, then options of the file system.
    pub(crate) options: Vec<String>,
}

impl Mount {
    /// Parses a line: `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue`.
    fn parse(line: &str) -> Option<Self> {
        let (left, right) = line.split_once(" - ")?;
        let left: Vec<&str> = left.split(' ').collect();
        let [_, _, device, root, point, options, ..] = left[..] else { return None };
        let mut right = right.split(' ');
        let (kind, source) = (right.next()?.to_owned(), unescaped(right.next()?));
        let options = options.split(',').chain(right.next().unwrap_or_default().split(','));
        Some(Self {
            point: unescaped(point).into(),
            root: unescaped(root).into(),
            kind,
            source,
            device: device.to_owned(),
            options: options.filter(|option| !option.is_empty()).map(str::to_owned).collect(),
        })
    }

    pub(crate) fn has_option(&self, option: &str) -> bool {
        self.options.iter().any(|known| known == option)
    }
}

impl Machine {
    /// Returns all mounts, in the order of mounting.
    pub(crate) fn mounts(&self) -> Vec<Mount> {
        self.text("/proc/self/mountinfo").iter().flat_map(|text| text.lines()).filter_map(Mount::parse).collect()
    }

    /// Returns the file system that contains an absolute path without links.
    pub(crate) fn mount_of(&self, path: &Path) -> Option<Mount> {
        let over = self.mounts().into_iter().filter(|mount| path.starts_with(&mount.point));
        // The last mount at a place hides the others.
        over.max_by_key(|mount| mount.point.components().count())
    }

    /// Returns true if the disk of a file system reports that it rotates; `None` if the file system has no disk.
    pub(crate) fn turns(&self, mount: &Mount) -> Option<bool> {
        let block = Path::new("/sys/dev/block").join(&mount.device);
        // A partition has no queue, but its disk has a queue.
        let queues = ["queue/rotational", "../queue/rotational"];
        let said = queues.iter().find_map(|queue| self.text(block.join(queue)))?;
        Some(said == "1")
    }
}

/// Decodes a name, in which blanks and backslashes are written as `\040`.
fn unescaped(name: &str) -> String {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let digits = after.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        if let Some(byte) = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()).filter(|_| first == b'\\') {
            bytes.push(byte);
            rest = &after[3..];
        } else {
            bytes.push(first);
            rest = after;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::super::tests::machine;
    use super::*;

    #[test]
    fn the_file_system_of_a_path_is_the_nearest_and_the_last() {
        let (_folder, machine) = machine(&[
            (
                "/proc/self/mountinfo",
                "27 1 254:1 / / rw,relatime - ext4 /dev/vda1 rw\n\
                 30 27 0:44 / /data rw - tmpfs tmpfs rw,size=4k\n\
                 40 27 0:45 / /data ro,relatime shared:7 - nfs4 server:/my\\040data rw,vers=4.2\n\
                 41 27 0:46 / /data/a\\134b rw - ext4 /dev/sdb rw\nhalf a line\n",
            ),
            ("/sys/devices/sdb/queue/rotational", "1\n"),
            ("/sys/devices/vda/queue/rotational", "0\n"),
            ("/sys/devices/vda/vda1/partition", "1\n"),
        ]);
        let at = |path: &str| machine.mount_of(Path::new(path)).unwrap();
        assert_eq!((at("/data/x").kind.as_str(), at("/data/x").source.as_str()), ("nfs4", "server:/my data"));
        assert!(at("/data/x").has_option("ro") && at("/data/x").has_option("vers=4.2"));
        assert_eq!((at("/data/a\\b/c").source.as_str(), at("/database").source.as_str()), ("/dev/sdb", "/dev/vda1"));
        std::fs::create_dir_all(machine.place("/sys/dev/block")).unwrap();
        for (device, disk) in [("254:1", "vda/vda1"), ("0:46", "sdb")] {
            let disk = machine.place("/sys/devices").join(disk);
            std::os::unix::fs::symlink(disk, machine.place("/sys/dev/block").join(device)).unwrap();
        }
        assert_eq!(
            [at("/x"), at("/data/a\\b"), at("/data")].map(|mount| machine.turns(&mount)),
            [Some(false), Some(true), None]
        );
    }
}
