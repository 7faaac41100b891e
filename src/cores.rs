//! The threads that share work among the cores of the machine.

use std::sync::OnceLock;

use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::fork::{self, PerProcess};

/// Does `work`, whose parallel iterators run on all cores.
///
/// They run on rayon's own threads. A fork does not have these, and would wait for them: it has others.
pub(crate) fn on_all<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    match of_fork() {
        Some(threads) => threads.install(work),
        None => work(),
    }
}

/// The threads of this process, if it is a fork. Where they cannot be started, those that it has not are no help either.
fn of_fork() -> Option<&'static ThreadPool> {
    static THREADS: PerProcess<OnceLock<ThreadPool>> = PerProcess::new(OnceLock::new);
    fork::is_fork().then(|| {
        THREADS.get().get_or_init(|| {
            let threads = ThreadPoolBuilder::new().thread_name(|_| "gristmill-cores".to_owned());
            threads.build().expect("a thread can be started")
        })
    })
}
