//! Runs the target that `FUZZ_TARGET` names.

#![no_main]

use std::sync::LazyLock;

static NAME: LazyLock<String> = LazyLock::new(|| std::env::var("FUZZ_TARGET").expect("FUZZ_TARGET names a target"));

libfuzzer_sys::fuzz_target!(|data: &[u8]| gristmill::fuzzing::run(&NAME, data));
