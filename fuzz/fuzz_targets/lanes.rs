#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gristmill::fuzzing::run("lanes", data));
