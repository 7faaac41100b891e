//! A process that forks workers.
//!
//! It is started as a worker is, but has one thread, loads what workers need, and then makes each worker by a fork, in a
//! few milliseconds. The trainer itself is never forked. Its workers are not children of the trainer: it tells how they end.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::command::{self, Call, WorkerCommand};
use crate::workers::sys::process::{Ends, Process, Status};
use crate::workers::sys::signals;

/// It loads what workers need first.
const PATIENCE: Duration = Duration::from_secs(20);
/// How an end is told, once it is seen.
const NEWS: Duration = Duration::from_secs(5);

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Zygote {
    /// Asked by one thread at a time, from the request to the answer.
    control: Mutex<UnixStream>,
    heard: Arc<Heard>,
    process: Process,
    listener: Option<JoinHandle<()>>,
}

/// What it has said.
#[derive(Debug, Default)]
struct Heard {
    news: Mutex<News>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct News {
    started: Option<u32>,
    ended: HashMap<u32, Status>,
    silent: bool,
}

impl Zygote {
    /// Starts one; `None` where that fails, and workers are better started one by one.
    pub(super) fn start(given: &WorkerCommand) -> Option<Self> {
        let (ours, theirs) = UnixStream::pair().ok()?;
        let mut command = command::zygote(given, OwnedFd::from(theirs).into()).ok()?;
        let mut child = command.spawn().ok()?;
        // The command holds the other end of the connection.
        drop(command);
        let process = Process::open(child.id()).inspect_err(|_| {
            let _ = child.kill();
            let _ = child.wait();
        });
        let (process, heard) = (process.ok()?, Arc::<Heard>::default());
        let (from, to) = (ours.try_clone().ok()?, heard.clone());
        let listen = move || {
            signals::block_all();
            to.listen(from);
        };
        let listener = std::thread::Builder::new().name("gristmill-zygote".into()).spawn(listen).ok()?;
        Some(Self { control: Mutex::new(ours), heard, process, listener: Some(listener) })
    }

    /// Has it load these modules, before it forks for the first time.
    pub(super) fn load(&self, modules: &[String]) {
        // One that hears nothing is found out when it is to fork.
        let _ = say(&lock(&self.control), &format!("load {}\n", modules.join(" ")));
    }

    /// A worker for `call`, which takes `slab` as its standard input; `None` where that fails.
    pub(super) fn fork(self: &Arc<Self>, call: &Call, slab: Option<BorrowedFd<'_>>) -> Option<Process> {
        if !self.process.is_ours() {
            return None;
        }
        let control = lock(&self.control);
        let slab =
            slab.map_or("/dev/null".to_owned(), |slab| format!("/proc/{}/fd/{}", std::process::id(), slab.as_raw_fd()));
        say(&control, &format!("start {slab} {}\n", call.write()))?;
        let pid = self.heard.started()?;
        // Until it is told so, it does not take the status, so that the number is nobody else's.
        let process = Process::of_another(pid, self.clone()).ok();
        say(&control, &format!("opened {pid}\n"))?;
        process
    }
}

impl Drop for Zygote {
    /// Its descriptors are closed when nobody has it any more, as those of workers are.
    fn drop(&mut self) {
        if self.process.is_ours() {
            self.process.kill();
            self.process.wait();
            // With the process the connection ends, and with that the thread.
            let _ = self.listener.take().map(JoinHandle::join);
        }
    }
}

impl Ends for Zygote {
    fn status(&self, pid: u32) -> Status {
        let news = lock(&self.heard.news);
        let unknown = |news: &mut News| !news.silent && !news.ended.contains_key(&pid);
        let (mut news, _) =
            self.heard.changed.wait_timeout_while(news, NEWS, unknown).unwrap_or_else(PoisonError::into_inner);
        news.ended.remove(&pid).unwrap_or(Status::Unknown)
    }
}

impl Heard {
    fn listen(&self, from: UnixStream) {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            let (kind, numbers) = line.split_once(' ').unwrap_or_default();
            let numbers: Vec<i64> = numbers.split(' ').filter_map(|word| word.parse().ok()).collect();
            let mut news = lock(&self.news);
            match (kind, &numbers[..]) {
                ("started", &[pid]) => news.started = u32::try_from(pid).ok(),
                ("ended", &[pid, code, signal, core]) => {
                    let status = match i32::try_from(signal) {
                        Ok(number) if number > 0 => Status::Signal { number, core: core != 0 },
                        _ => Status::Code(code as i32),
                    };
                    news.ended.insert(pid as u32, status);
                }
                _ => {}
            }
            drop(news);
            self.changed.notify_all();
        }
        lock(&self.news).silent = true;
        self.changed.notify_all();
    }

    fn started(&self) -> Option<u32> {
        let deadline = Instant::now() + PATIENCE;
        let mut news = lock(&self.news);
        loop {
            if let Some(pid) = news.started.take() {
                return Some(pid);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if news.silent || left.is_zero() {
                return None;
            }
            news = self.changed.wait_timeout(news, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

fn say(mut control: &UnixStream, words: &str) -> Option<()> {
    signals::without_sigpipe(|| control.write_all(words.as_bytes())).ok()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Says what it forks and how that ends, as the one of Python does; what a "worker" runs stands where its socket would.
    const SCRIPT: &str = r#"
        exec 2> /dev/null
        while read -r word first second; do
            case $word in
                load) code=$second ;;
                start) sh -c "${second##*;} $code" < /dev/null & echo "started $!" >&0 ;;
                opened)
                    wait "$first"; status=$?
                    if [ $status -gt 128 ]; then echo "ended $first 0 $((status - 128)) 0" >&0
                    else echo "ended $first $status 0 0" >&0; fi ;;
            esac
        done"#;

    fn zygote(script: &str) -> Option<Arc<Zygote>> {
        let to_fork = Some(["-c", script].map(Into::into).to_vec());
        Zygote::start(&WorkerCommand { program: "/bin/sh".into(), to_fork, ..WorkerCommand::default() }).map(Arc::new)
    }

    fn call(program: &str) -> Call {
        Call { in_main: true, forked: true, parent: std::process::id(), socket: program.into() }
    }

    #[test]
    fn it_tells_how_its_workers_end() {
        let zygote = zygote(SCRIPT).unwrap();
        let sleeps = zygote.fork(&call("exec sleep 1000"), None).unwrap();
        assert!(!sleeps.ends_within(Duration::ZERO));
        sleeps.kill();
        assert_eq!(sleeps.wait(), Status::Signal { number: 9, core: false });
        zygote.load(&["numpy".into(), "3".into()]);
        assert_eq!(zygote.fork(&call("exit"), None).unwrap().wait(), Status::Code(3));
    }

    #[test]
    fn where_it_ends_its_workers_are_seen_to_and_no_more_are_forked() {
        let zygote = zygote(SCRIPT).unwrap();
        let sleeps = zygote.fork(&call("exec sleep 1000"), None).unwrap();
        zygote.process.kill();
        assert!(zygote.fork(&call("exec sleep 1000"), None).is_none());
        sleeps.kill();
        assert_eq!(sleeps.wait(), Status::Unknown);
    }

    #[test]
    fn one_that_cannot_fork_is_none() {
        let nowhere = WorkerCommand { program: "/nowhere/sh".into(), ..WorkerCommand::default() };
        assert!(Zygote::start(&nowhere).is_none());
        for script in ["exit 0", "read -r line; echo 'sorry' >&0; exit 1", "read -r line; echo 'started 0' >&0; exit 1"]
        {
            assert!(zygote(script).unwrap().fork(&call("exit 0"), None).is_none(), "{script}");
        }
    }

    #[test]
    fn it_is_gone_when_nobody_has_it() {
        let zygote = zygote(SCRIPT).unwrap();
        let folder = format!("/proc/{}", zygote.process.pid());
        assert!(std::path::Path::new(&folder).exists());
        drop(zygote);
        assert!(!std::path::Path::new(&folder).exists());
    }
}
