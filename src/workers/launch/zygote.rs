//! A process that forks workers.
//!
//! It is started like a worker but has one thread. It loads the modules that workers need, then forks each worker in a
//! few milliseconds. The trainer itself is never forked. The forked workers are not children of the trainer, so the
//! zygote reports their exit status.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::command::{self, Call, WorkerCommand};
use crate::sync::{Locked, Regardless};
use crate::workers::channel::write_all;
use crate::workers::sys::process::{Ends, Process, Status};
use crate::workers::sys::signals;

/// Time limit for a fork, which includes loading modules the first time. After the limit, workers are started
/// separately.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time limit for the report of an exit that was already observed.
const NEWS: Duration = Duration::from_secs(2);
/// Time between checks whether the process is stopped. A stopped process will not answer.
const LOOK: Duration = Duration::from_millis(100);

/// Handle to the process; see the [module](self).
#[derive(Debug)]
pub(super) struct Zygote {
    /// Connection for requests. One thread at a time holds it, from its request to the answer.
    control: Mutex<UnixStream>,
    heard: Arc<Heard>,
    process: Process,
    /// Time limit for a fork; see [`PATIENCE`].
    patience: Duration,
    listener: Option<JoinHandle<()>>,
}

/// Messages received from the process.
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
    /// Starts the process; returns `None` on failure. Workers are then better started separately.
    pub(super) fn start(given: &WorkerCommand) -> Option<Self> {
        let (ours, theirs) = UnixStream::pair().ok()?;
        let command = command::zygote(given, OwnedFd::from(theirs).into()).ok()?;
        let heard = Arc::<Heard>::default();
        let (from, to) = (ours.try_clone().ok()?, heard.clone());
        let (tell, told) = crossbeam_channel::bounded(1);
        // The kernel ends the process together with the thread that started it, so the listening thread starts it.
        let listen = move || {
            let Some(process) = spawn(command) else { return };
            signals::block_all();
            if tell.send(process).is_ok() {
                to.listen(from);
            }
        };
        let listener = std::thread::Builder::new().name("gristmill-zygote".into()).spawn(listen).ok()?;
        let process = told.recv().ok()?;
        Some(Self { control: Mutex::new(ours), heard, process, patience: PATIENCE, listener: Some(listener) })
    }

    /// Makes the process load these modules before its first fork.
    pub(super) fn load(&self, modules: &[String]) {
        // A process that does not respond is detected at the next fork.
        let _ = say(&self.control.locked(), &format!("load {}\n", modules.join(" ")));
    }

    /// Forks a worker for `call` with a copy of `socket` as standard input; returns `None` on failure.
    pub(super) fn fork(self: &Arc<Self>, call: Call, socket: &OwnedFd) -> Option<Process> {
        if !self.process.is_ours() {
            return None;
        }
        let control = self.control.locked();
        if self.heard.news.locked().silent {
            return None;
        }
        let request = format!("start {}\n", call.write());
        write_all(control.as_fd(), request.as_bytes(), Some(socket.as_fd())).ok()?;
        let Some(pid) = self.heard.started(&self.process, self.patience) else {
            self.heard.give_up();
            return None;
        };
        // The zygote does not reap the worker before `opened`, so the pid cannot be reused until then.
        let process = Process::of_another(pid, self.clone()).ok();
        say(&control, &format!("opened {pid}\n"))?;
        process
    }
}

fn spawn(mut command: std::process::Command) -> Option<Process> {
    let mut child = command.spawn().ok()?;
    // The command, dropped here, holds the other end of the connection.
    let process = Process::open(child.id()).inspect_err(|_| {
        let _ = child.kill();
        let _ = child.wait();
    });
    process.ok()
}

impl Drop for Zygote {
    /// Ends the process before its descriptors close, as for workers. A forked copy of the handle ends nothing.
    fn drop(&mut self) {
        if self.process.is_ours() {
            self.process.kill();
            self.process.wait();
            // The connection ends with the process, and the thread ends with the connection.
            let _ = self.listener.take().map(JoinHandle::join);
        } else {
            // The thread does not exist in a fork, which must not detach it either.
            std::mem::forget(self.listener.take());
        }
    }
}

impl Ends for Zygote {
    fn status(&self, pid: u32) -> Status {
        let news = self.heard.news.locked();
        let unknown = |news: &mut News| !news.silent && !news.ended.contains_key(&pid);
        let (mut news, _) = self.heard.changed.wait_timeout_while(news, NEWS, unknown).regardless();
        news.ended.remove(&pid).unwrap_or(Status::Unknown)
    }
}

impl Heard {
    fn listen(&self, from: UnixStream) {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            let (kind, numbers) = line.split_once(' ').unwrap_or_default();
            let numbers: Vec<i64> = numbers.split(' ').filter_map(|word| word.parse().ok()).collect();
            let mut news = self.news.locked();
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
        self.news.locked().silent = true;
        self.changed.notify_all();
    }

    fn started(&self, process: &Process, patience: Duration) -> Option<u32> {
        let deadline = Instant::now() + patience;
        let mut news = self.news.locked();
        loop {
            if let Some(pid) = news.started.take() {
                return Some(pid);
            }
            if news.silent || Instant::now() >= deadline || process.is_stopped() {
                return None;
            }
            news = self.changed.wait_timeout(news, LOOK).regardless().0;
        }
    }

    /// Stops expecting answers. The process stays alive, because its forked workers end with it.
    fn give_up(&self) {
        self.news.locked().silent = true;
        self.changed.notify_all();
    }
}

fn say(control: &UnixStream, words: &str) -> Option<()> {
    write_all(control.as_fd(), words.as_bytes(), None).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Script that reports forks and exits as the Python zygote does; a "worker" runs the program of the last `load`.
    const SCRIPT: &str = r#"
        exec 2> /dev/null
        while read -r word rest; do
            case $word in
                load) program=$rest ;;
                start) sh -c "$program" < /dev/null & echo "started $!" >&0 ;;
                opened)
                    wait "$rest"; status=$?
                    if [ $status -gt 128 ]; then echo "ended $rest 0 $((status - 128)) 0" >&0
                    else echo "ended $rest $status 0 0" >&0; fi ;;
            esac
        done"#;

    fn zygote(script: &str) -> Option<Arc<Zygote>> {
        let to_fork = Some(["-c", script].map(Into::into).to_vec());
        Zygote::start(&WorkerCommand { program: "/bin/sh".into(), to_fork, ..WorkerCommand::default() }).map(Arc::new)
    }

    /// Makes the zygote fork a process that runs `program`.
    fn fork(zygote: &Arc<Zygote>, program: &str) -> Option<Process> {
        zygote.load(&[program.to_owned()]);
        let (socket, _) = UnixStream::pair().unwrap();
        zygote.fork(Call { in_main: true, forked: true, parent: std::process::id() }, &socket.into())
    }

    #[test]
    fn it_tells_how_its_workers_end() {
        let zygote = zygote(SCRIPT).unwrap();
        let sleeps = fork(&zygote, "exec sleep 1000").unwrap();
        assert!(!sleeps.ends_within(Duration::ZERO));
        sleeps.kill();
        assert_eq!(sleeps.wait(), Status::Signal { number: 9, core: false });
        assert_eq!(fork(&zygote, "sleep 0.1; exit 3").unwrap().wait(), Status::Code(3));
    }

    #[test]
    fn where_it_ends_its_workers_are_seen_to_and_no_more_are_forked() {
        let zygote = zygote(SCRIPT).unwrap();
        let sleeps = fork(&zygote, "exec sleep 1000").unwrap();
        zygote.process.kill();
        assert!(fork(&zygote, "exec sleep 1000").is_none());
        sleeps.kill();
        assert_eq!(sleeps.wait(), Status::Unknown);
    }

    #[test]
    fn one_that_cannot_fork_is_none() {
        let nowhere = WorkerCommand { program: "/nowhere/sh".into(), ..WorkerCommand::default() };
        assert!(Zygote::start(&nowhere).is_none());
        for script in ["exit 0", "read -r line; echo 'sorry' >&0; exit 1", "read -r line; echo 'started 0' >&0; exit 1"]
        {
            assert!(fork(&zygote(script).unwrap(), "exit 0").is_none(), "{script}");
        }
    }

    #[test]
    fn one_that_is_stopped_is_left_at_once() {
        let mut zygote = zygote(SCRIPT).unwrap();
        // The stop must be noticed: this test would not end if the whole patience had to pass.
        Arc::get_mut(&mut zygote).unwrap().patience = Duration::from_secs(3600);
        let sleeps = fork(&zygote, "exec sleep 1000").unwrap();
        let pid = rustix::process::Pid::from_raw(zygote.process.pid.cast_signed()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
        assert!((0..20).all(|_| fork(&zygote, "exit 0").is_none()));
        assert!(!sleeps.ends_within(Duration::ZERO), "what it forked before goes on");
        sleeps.kill();
        assert_eq!(sleeps.wait(), Status::Unknown);
    }

    #[test]
    fn it_is_gone_when_nobody_has_it() {
        let zygote = zygote(SCRIPT).unwrap();
        let folder = format!("/proc/{}", zygote.process.pid);
        assert!(std::path::Path::new(&folder).exists());
        drop(zygote);
        assert!(!std::path::Path::new(&folder).exists());
    }
}
