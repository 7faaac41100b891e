use std::error::Error as _;
use std::ffi::OsString;
use std::io::{Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::path::Path;

use super::*;
use crate::error::{Error, ErrorKind};
use crate::workers::sys::modules;

/// The failure when a worker is started with this command, and has `time_out` to connect.
fn failure_within<const N: usize>(time_out: Duration, program: impl AsRef<Path>, arguments: [&str; N]) -> Error {
    set_worker_command(program.as_ref(), arguments.map(OsString::from));
    let options = Options { time_out, ..Options::default() };
    let error = begin(adder, 0, echo, &options, &unbounded().0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Worker);
    assert!(error.help_text().is_some());
    error
}

fn failure_with<const N: usize>(program: impl AsRef<Path>, arguments: [&str; N]) -> Error {
    failure_within(PATIENCE, program, arguments)
}

fn cause(error: &Error) -> &LaunchFailure {
    error.source().unwrap().downcast_ref().unwrap()
}

/// Everything in the temporary directory of this process, which is its own.
fn private_temp() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    // SAFETY: the caller runs in a scene, whose other thread only waits.
    unsafe { std::env::set_var("TMPDIR", directory.path()) };
    directory
}

#[test]
fn a_child_that_never_greets_is_a_typed_error() {
    scenario(|()| {
        let temp = private_temp();
        let error = failure_with("/bin/true", []);
        assert!(
            matches!(cause(&error), LaunchFailure::Died { exit } if exit.to_string().starts_with("exit code 0")),
            "{error}"
        );

        let error = failure_with("/bin/sh", ["-c", "kill -ABRT $$"]);
        assert!(error.to_string().contains("killed by signal 6 (SIGABRT)"), "{error}");

        let error = failure_within(Duration::from_millis(400), "/bin/sh", ["-c", "exec sleep 100"]);
        let LaunchFailure::TimedOut { pid, .. } = *cause(&error) else { panic!("{error}") };
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
        assert!(error.to_string().ends_with("did not connect within 400ms"), "{error}");

        let error = failure_with("/nowhere/to/be found", []);
        assert!(matches!(cause(&error), LaunchFailure::Spawn { .. }), "{error}");
        assert!(error.to_string().contains("No such file"), "{error}");

        let error = failure_with(temp.path(), []);
        assert!(error.to_string().contains("Permission denied"), "{error}");

        assert_eq!(temp.path().read_dir().unwrap().count(), 0);
        Ok(())
    });
}

#[test]
fn a_script_must_exec() {
    scenario(|()| {
        let error = failure_with("/bin/sh", ["-c", "/proc/$PPID/exe; exit 3"]);
        assert!(error.to_string().contains("exit code 3") && error.help_text().unwrap().contains("exec"), "{error}");
        set_worker_command("/bin/sh", ["-c", "exec /proc/$PPID/exe"]);
        let (worker, events) = echoing(4);
        assert_echoes(&worker, &events, 1, 4);
        Ok(())
    });
}

#[test]
fn a_copy_of_the_program_serves_and_another_build_does_not() {
    scenario(|()| {
        let temp = private_temp();
        let copy = temp.path().join("copy");
        std::fs::copy("/proc/self/exe", &copy).unwrap();
        // SAFETY: the scene's other thread only waits.
        unsafe { std::env::set_var("GRISTMILL_WORKER_EXE", &copy) };
        let (worker, events) = echoing(4);
        assert_echoes(&worker, &events, 1, 4);
        drop(worker);

        let id = modules::loaded()[0].build_id.clone().unwrap();
        let bytes = std::fs::read(&copy).unwrap();
        let place = bytes.windows(id.len()).position(|w| w == id).unwrap();
        let mut file = std::fs::File::options().write(true).open(&copy).unwrap();
        file.seek(SeekFrom::Start(place as u64)).unwrap();
        file.write_all(&[id[0] ^ 1]).unwrap();
        drop(file);
        let error = begin(adder, 0, echo, &Options::default(), &unbounded().0).unwrap_err();
        assert!(matches!(cause(&error), LaunchFailure::OtherBuild { .. }), "{error}");
        assert!(error.to_string().contains(copy.to_str().unwrap()), "{error}");
        Ok(())
    });
}

#[test]
fn no_temporary_directory_is_needed() {
    scenario(|()| {
        // SAFETY: the scene's other thread only waits.
        unsafe { std::env::set_var("TMPDIR", "/nowhere/at all") };
        let (worker, events) = echoing(4);
        assert_echoes(&worker, &events, 1, 4);
        Ok(())
    });
}

#[test]
fn a_program_astray_does_not_start_itself_for_ever() {
    scenario(|()| {
        // SAFETY: the scene's other thread only waits.
        unsafe { std::env::set_var("GRISTMILL_WORKER", "1") };
        let error = begin(adder, 0, echo, &Options::default(), &unbounded().0).unwrap_err();
        assert!(matches!(cause(&error), LaunchFailure::WorkerAstray), "{error}");
        Ok(())
    });
}

/// Makes nested workers run the test `name` of this program instead of the hook.
fn enter_by_test(name: &str) {
    // Returns, since this worker has its call behind it; from now on `main` is said to call it.
    init();
    let name = format!("{}::{name}", module_path!().split_once("::").unwrap().1);
    set_worker_command("/proc/self/exe", ["--exact", &name, "--ignored", "--nocapture"]);
}

#[test]
#[ignore = "a part of `init_takes_over_in_main`"]
fn main_that_calls_init() {
    init();
    panic!("this process is no worker");
}

#[test]
fn init_takes_over_in_main() {
    scenario(|()| {
        enter_by_test("main_that_calls_init");
        let (worker, events) = echoing(4);
        assert_echoes(&worker, &events, 1, 4);
        assert!(worker.stop(PATIENCE)?.is_clean());
        Ok(())
    });
}

#[test]
#[ignore = "a part of `a_child_that_says_nothing_is_a_typed_error`"]
fn main_that_says_nothing() {
    // It is killed before.
    std::thread::sleep(2 * PATIENCE);
}

#[test]
#[ignore = "a part of `a_child_that_says_nothing_is_a_typed_error`"]
fn main_that_says_something_else() {
    let stdin = std::io::stdin().as_fd().try_clone_to_owned().unwrap();
    crate::workers::channel::Channel::over(stdin).send(&vec![0xffu8; 50]).unwrap();
    // It is killed before.
    std::thread::sleep(2 * PATIENCE);
}

#[test]
#[ignore = "a part of `a_child_that_says_nothing_is_a_typed_error`"]
fn main_that_closes_the_connection() {
    rustix::stdio::dup2_stdin(std::fs::File::open("/dev/null").unwrap()).unwrap();
    // It is killed before.
    std::thread::sleep(2 * PATIENCE);
}

#[test]
#[ignore = "a part of `a_child_that_says_nothing_is_a_typed_error`"]
fn main_that_does_not_call_init() {}

#[test]
fn a_child_that_says_nothing_is_a_typed_error() {
    scenario(|()| {
        let error_within = |time_out, name: &str| {
            enter_by_test(name);
            let options = Options { time_out, ..Options::default() };
            begin(adder, 0, echo, &options, &unbounded().0).unwrap_err()
        };
        let error_of = |name| error_within(PATIENCE, name);
        let error = error_within(Duration::from_secs(2), "main_that_says_nothing");
        assert!(matches!(cause(&error), LaunchFailure::TimedOut { .. }), "{error}");
        let error = error_of("main_that_says_something_else");
        assert!(matches!(cause(&error), LaunchFailure::NoGreeting { .. }), "{error}");
        let error = error_of("main_that_closes_the_connection");
        assert!(error.to_string().contains("it closed the connection"), "{error}");
        let error = error_of("main_that_does_not_call_init");
        assert!(matches!(cause(&error), LaunchFailure::Died { .. }), "{error}");
        Ok(())
    });
}
