//! A process that forks workers.
//!
//! It is started as a worker is, but has one thread, loads what workers need, and then makes each worker by a fork, in a
//! few milliseconds. The trainer itself is never forked. Its workers are not children of the trainer: it tells how they end.

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

/// Time that forking may take: it loads what workers need first. After that, workers are started one by one.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time that it may take to tell of an end that was seen.
const NEWS: Duration = Duration::from_secs(2);
/// Time between two looks whether the process is stopped: then nothing will come of it.
const LOOK: Duration = Duration::from_millis(100);

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Zygote {
    /// Asked by one thread at a time, from the request to the answer.
    control: Mutex<UnixStream>,
    heard: Arc<Heard>,
    process: Process,
    /// See [`PATIENCE`].
    patience: Duration,
    listener: Option<JoinHandle<()>>,
}

/// Words that came from the process.
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
        let command = command::zygote(given, OwnedFd::from(theirs).into()).ok()?;
        let heard = Arc::<Heard>::default();
        let (from, to) = (ours.try_clone().ok()?, heard.clone());
        let (tell, told) = crossbeam_channel::bounded(1);
        // The kernel ends it with the thread that started it: the one that listens to it.
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

    /// Has it load these modules, before it forks for the first time.
    pub(super) fn load(&self, modules: &[String]) {
        // One that hears nothing is found out when it is to fork.
        let _ = say(&self.control.locked(), &format!("load {}\n", modules.join(" ")));
    }

    /// A worker for `call`, which takes a copy of `socket` as its standard input; `None` where that fails.
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
        // Until it is told so, it does not take the status, so that the number is nobody else's.
        let process = Process::of_another(pid, self.clone()).ok();
        say(&control, &format!("opened {pid}\n"))?;
        process
    }
}

fn spawn(mut command: std::process::Command) -> Option<Process> {
    let mut child = command.spawn().ok()?;
    // The command, which ends here, holds the other end of the connection.
    let process = Process::open(child.id()).inspect_err(|_| {
        let _ = child.kill();
        let _ = child.wait();
    });
    process.ok()
}

impl Drop for Zygote {
    /// Its descriptors are closed when nobody has it any more, as those of workers are.
    fn drop(&mut self) {
        if self.process.is_ours() {
            self.process.kill();
            self.process.wait();
            // With the process the connection ends, and with that the thread.
            let _ = self.listener.take().map(JoinHandle::join);
        } else {
            // A fork does not have the thread, and must not let go of it either.
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

    /// Expects nothing more from it. It is left as it is, because those that it has forked end with it.
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

    /// Says what it forks and how that ends, as the one of Python does; a "worker" runs what was to be loaded last.
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

    /// Has it fork a process that runs `program`.
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
        // It is seen to be stopped: this test does not end if that takes all the patience.
        Arc::get_mut(&mut zygote).unwrap().patience = Duration::from_secs(3600);
        let sleeps = fork(&zygote, "exec sleep 1000").unwrap();
        let pid = rustix::process::Pid::from_raw(zygote.process.pid().cast_signed()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
        assert!((0..20).all(|_| fork(&zygote, "exit 0").is_none()));
        assert!(!sleeps.ends_within(Duration::ZERO), "what it forked before goes on");
        sleeps.kill();
        assert_eq!(sleeps.wait(), Status::Unknown);
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
