//! Disk cache of object blocks, shared by processes and kept across runs.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime};

use highway::{HighwayHash, HighwayHasher};
use tokio::sync::Semaphore;

use super::blocks::Key;
use super::private::{self, Secret};
use crate::element::{Buffer, BufferMut};
use crate::error::{ErrorKind, Result};
use crate::temporary::{Readers, Temporary};

/// Folder of blocks, with a file per block. Evicts the least recently used blocks first.
///
/// A block is written under a temporary name, synced and renamed. A read checks the hash, so damaged files are fetched
/// again, whether left by a crash or by another process. The modification time of a file is the time of its last use.
///
/// The hash uses a secret key in the folder, which only the owner can read. Blocks that other users made or that were
/// copied from elsewhere are therefore rejected. The key does not protect against other programs of the owner or
/// against the administrator.
pub(in crate::store) struct Disk {
    folder: PathBuf,
    size: u64,
    secret: Secret,
    /// Bytes written since the last scan of the folder. Initially larger than any folder.
    unseen: AtomicU64,
    /// Permits for pending writes. Further blocks are not cached.
    pub(in crate::store) writes: Arc<Semaphore>,
}

const MAGIC: &[u8; 8] = b"gmblock2";
/// Length of the magic and the keyed hash, in bytes.
const HEADER: usize = 24;
const WAITING: usize = 512;
/// Minimum time between updates of a block's last use.
const NOTED: Duration = Duration::from_secs(60);
/// Age at which an unfinished file is removed, because its process was killed.
const ABANDONED: Duration = Duration::from_secs(600);

impl Disk {
    /// Opens the cache in a folder. Returns `None` if the folder cannot be created or written.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if the folder is a link, belongs to another user, or is writable by others.
    pub(in crate::store) fn open(folder: &Path, size: u64) -> Result<Option<Self>> {
        // `indices` is next to `blocks` and contains the positions of records.
        let (indices, folder) = (folder.join("indices"), folder.join("blocks"));
        for folder in [&indices, &folder] {
            if let Err(error) = private::folder(folder) {
                if error.kind() == ErrorKind::Config {
                    return Err(error);
                }
                tracing::warn!(%error, "no blocks are kept");
                return Ok(None);
            }
        }
        let secret = match private::key(&folder.join("key")) {
            Ok(secret) => secret,
            Err(error) => {
                tracing::warn!(folder = %folder.display(), %error, "no blocks are kept");
                return Ok(None);
            }
        };
        let (unseen, writes) = (AtomicU64::new(u64::MAX / 2), Arc::new(Semaphore::new(WAITING)));
        Ok(Some(Self { folder, size, secret, unseen, writes }))
    }

    fn path(&self, key: Key) -> PathBuf {
        let name = format!("{:032x}", key.0);
        self.folder.join(&name[..2]).join(format!("{}-{}", &name[2..], key.1))
    }

    /// Returns true if a block has a file.
    pub(in crate::store) fn has(&self, key: Key) -> bool {
        self.path(key).exists()
    }

    /// Reads a block of `len` bytes. Returns `None` if the block is missing or damaged.
    pub(in crate::store) fn read(&self, key: Key, len: u64) -> Option<Buffer> {
        let path = self.path(key);
        let mut file = File::open(&path).ok()?;
        let found = self.checked(&mut file, key, len).ok()?;
        if found.is_none() {
            // Later reads would only fail the check again.
            let _ = fs::remove_file(&path);
        } else if file.metadata().and_then(|m| m.modified()).is_ok_and(|time| is_older(time, NOTED)) {
            let _ = file.set_modified(SystemTime::now());
        }
        found
    }

    /// Writes a block to the cache. A failed write is only logged; the block is then fetched again.
    pub(in crate::store) fn write(&self, key: Key, bytes: &[u8]) {
        let path = self.path(key);
        if let Err(error) = self.put(&path, key, bytes) {
            tracing::debug!(path = %path.display(), %error, "a block is not kept");
            return;
        }
        let written = (HEADER + bytes.len()) as u64;
        let unseen = self.unseen.fetch_add(written, Relaxed).saturating_add(written);
        if unseen > self.size / 16
            && let Err(error) = self.make_room()
        {
            tracing::debug!(folder = %self.folder.display(), %error, "blocks cannot be removed");
        }
    }

    /// Evicts blocks down to 7/8 of the limit, which leaves room for writes until the next scan. Only a single process
    /// scans at a time. Other processes try again after their next block, because the scan may have missed their
    /// writes.
    fn make_room(&self) -> io::Result<()> {
        let lock = lock(&self.folder)?;
        if lock.try_lock().is_err() {
            return Ok(());
        }
        self.unseen.store(0, Relaxed);
        let (mut blocks, mut total) = (Vec::new(), 0);
        for folder in fs::read_dir(&self.folder)? {
            let Ok(files) = fs::read_dir(folder?.path()) else { continue };
            for file in files {
                let file = file?;
                // Another process may have removed the file meanwhile.
                let Ok(metadata) = file.metadata() else { continue };
                let time = metadata.modified()?;
                let is_begun = file.file_name().as_encoded_bytes().starts_with(b".");
                if is_begun && is_older(time, ABANDONED) {
                    let _ = fs::remove_file(file.path());
                    continue;
                }
                total += metadata.len();
                if !is_begun {
                    blocks.push((time, metadata.len(), file.path()));
                }
            }
        }
        blocks.sort_unstable();
        let most = self.size - self.size / 8;
        for (_, len, path) in blocks {
            if total <= most {
                break;
            }
            let _ = fs::remove_file(path);
            total -= len;
        }
        Ok(())
    }

    /// Returns the keyed hash of a block. Without the key, the hash cannot be computed.
    fn hash(&self, key: Key, bytes: &[u8]) -> [u8; 16] {
        let words = self.secret.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
        let mut secret = [0; 4];
        secret.iter_mut().zip(words).for_each(|(to, word)| *to = word);
        let mut hasher = HighwayHasher::new(highway::Key(secret));
        hasher.append(&key.0.to_le_bytes());
        hasher.append(&key.1.to_le_bytes());
        hasher.append(bytes);
        bytemuck::cast(hasher.finalize128().map(u64::to_le))
    }

    /// Reads the bytes of a file. Returns `None` if the length, the magic or the hash does not match the block.
    fn checked(&self, file: &mut File, key: Key, len: u64) -> io::Result<Option<Buffer>> {
        let mut header = [0; HEADER];
        if file.metadata()?.len() != HEADER as u64 + len {
            return Ok(None);
        }
        file.read_exact(&mut header)?;
        let mut bytes = BufferMut::zeroed(len as usize);
        file.read_exact(bytes.as_mut_bytes())?;
        let (magic, stored) = header.split_at(MAGIC.len());
        let is_right = magic == MAGIC && stored == self.hash(key, bytes.as_bytes());
        Ok(is_right.then(|| bytes.freeze()))
    }

    fn put(&self, path: &Path, key: Key, bytes: &[u8]) -> io::Result<()> {
        fs::create_dir_all(path.parent().unwrap_or(path))?;
        let (mut file, temporary) = Temporary::create(path, Readers::Owner)?;
        file.write_all(MAGIC)?;
        file.write_all(&self.hash(key, bytes))?;
        file.write_all(bytes)?;
        file.sync_all()?;
        temporary.publish(path)
    }
}

debug_as!(Disk, |self, f| write!(f, "Disk({}, {} bytes)", self.folder.display(), self.size));

fn is_older(time: SystemTime, age: Duration) -> bool {
    time.elapsed().is_ok_and(|elapsed| elapsed > age)
}

/// Opens the file that serves as the lock: the folder, so that no other file can take its place.
#[cfg(unix)]
fn lock(folder: &Path) -> io::Result<File> {
    File::open(folder)
}

#[cfg(not(unix))]
fn lock(folder: &Path) -> io::Result<File> {
    File::options().write(true).create(true).truncate(false).open(folder.join("lock"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Key = (0xabcd << 112, 7);

    fn opened(folder: &Path, size: u64) -> Disk {
        Disk::open(folder, size).unwrap().unwrap()
    }

    fn files(disk: &Disk) -> Vec<PathBuf> {
        let folders = fs::read_dir(&disk.folder).unwrap().flatten().filter(|entry| entry.path().is_dir());
        folders.flat_map(|folder| fs::read_dir(folder.path()).unwrap().flatten()).map(|entry| entry.path()).collect()
    }

    #[test]
    fn what_is_damaged_is_not_there() {
        let dir = tempfile::tempdir().unwrap();
        let disk = opened(dir.path(), 1 << 20);
        let bytes = vec![5; 40];
        disk.write(KEY, &bytes);
        assert_eq!(disk.read(KEY, 40).unwrap().as_bytes(), bytes);
        let path = disk.path(KEY);
        let good = fs::read(&path).unwrap();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            for bad in [&bad[..], &good[..at]] {
                fs::write(&path, bad).unwrap();
                assert!(disk.read(KEY, 40).is_none() && !disk.has(KEY), "byte {at}");
            }
        }
        // A copy under another block number is rejected.
        fs::create_dir_all(disk.path((KEY.0, 8)).parent().unwrap()).unwrap();
        fs::write(disk.path((KEY.0, 8)), &good).unwrap();
        assert!(disk.read((KEY.0, 8), 40).is_none());
    }

    #[test]
    fn the_oldest_go_and_the_size_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let disk = opened(dir.path(), 16 * 1000);
        let age = |number: u64, seconds: u64| {
            let file = File::options().append(true).open(disk.path((1, number))).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(seconds)).unwrap();
        };
        for number in 0..14 {
            disk.write((1, number), &[0; 1000 - HEADER]);
            age(number, 1000 - number);
        }
        // A read makes a block recent.
        assert!(disk.read((1, 0), 1000 - HEADER as u64).is_some());
        for number in 14..40 {
            disk.write((1, number), &[0; 1000 - HEADER]);
            age(number, 1000 - number);
            let total: u64 = files(&disk).iter().map(|path| fs::metadata(path).unwrap().len()).sum();
            assert!(total <= 16 * 1000, "{total} bytes behind block {number}");
        }
        assert!(disk.has((1, 0)) && disk.has((1, 39)) && !disk.has((1, 1)) && !disk.has((1, 20)));
    }

    #[test]
    fn what_another_process_left_begun_takes_room_and_goes() {
        let dir = tempfile::tempdir().unwrap();
        let disk = opened(dir.path(), 16 * 1000);
        let left = disk.path(KEY).with_file_name(".1.2");
        fs::create_dir_all(left.parent().unwrap()).unwrap();
        fs::write(&left, [0; 8000]).unwrap();
        let write = |numbers: std::ops::Range<u64>| {
            numbers.for_each(|number| disk.write((1, number), &[0; 1000 - HEADER]));
            files(&disk).iter().map(|path| fs::metadata(path).unwrap().len()).sum::<u64>()
        };
        let total = write(0..20);
        assert!(left.exists() && (8000..=16 * 1000).contains(&total), "{total}");
        let long_ago = SystemTime::now() - 2 * ABANDONED;
        File::options().append(true).open(&left).unwrap().set_modified(long_ago).unwrap();
        let total = write(20..40);
        assert!(!left.exists() && total > 8000, "{total}");
    }

    #[test]
    fn who_finds_another_making_room_tries_again() {
        let dir = tempfile::tempdir().unwrap();
        let disk = opened(dir.path(), 16 * 1000);
        let lock = lock(&disk.folder).unwrap();
        lock.lock().unwrap();
        let write = |number| disk.write((1, number), &[0; 1000 - HEADER]);
        (0..30).for_each(write);
        assert_eq!(files(&disk).len(), 30);
        drop(lock);
        write(30);
        assert!(files(&disk).len() <= 14, "{}", files(&disk).len());
    }

    #[test]
    fn a_folder_that_cannot_be_written_keeps_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a");
        fs::write(&file, b"").unwrap();
        assert!(Disk::open(&file, 1 << 20).unwrap().is_none());
    }

    #[test]
    fn a_block_that_another_cache_made_is_none() {
        let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (disk, forger) = (opened(dir.path(), 1 << 20), opened(other.path(), 1 << 20));
        for disk in [&disk, &forger] {
            disk.write(KEY, &[1; 40]);
        }
        assert!(opened(dir.path(), 1 << 20).read(KEY, 40).is_some());
        fs::copy(forger.path(KEY), disk.path(KEY)).unwrap();
        assert!(disk.read(KEY, 40).is_none() && !disk.has(KEY));
    }

    #[cfg(unix)]
    #[test]
    fn nobody_else_reads_what_is_kept() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let disk = opened(dir.path(), 1 << 20);
        disk.write(KEY, &[1]);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&disk.folder), mode(&disk.path(KEY))), (0o700, 0o600));
        fs::set_permissions(&disk.folder, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(Disk::open(dir.path(), 1).unwrap_err().message().contains("others may write"));
    }
}
